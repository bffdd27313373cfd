"""What an operator's Prometheus reads at `/metrics`.

Counts and ages come from rows at the moment of the scrape, in a constant number of queries: they are the installation's, the same
from every web process, and nothing is lost when one restarts. Sockets and request times are this web process's own; scrape each,
and sum them there. No label names a person, an address or a token; routes are patterns, so their number is that of `urls.py`.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime

import redis
from django.conf import settings
from django.db.models import Count, Min, Q, Sum
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily

from console.capacity.models import Drain, Pool
from console.capacity.queries import automation
from console.clusters.models import Cluster
from console.timeline.models import Stream

LIMIT = 0.5  # seconds that Redis has to say how long its queues are
QUEUES = ("urgent", "drains", "default", "bulk")
TOOK = Histogram(
    "halftide_http_request_duration_seconds",
    "Time to an answer in this web process",
    ["method", "route", "status"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10),
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class TimingMiddleware:
    """Times each request by its route."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = self.get_response(request)
        route = request.resolver_match.route if request.resolver_match else "none"
        method = request.method if request.method in METHODS else "other"
        TOOK.labels(method, route, f"{response.status_code // 100}xx").observe(time.perf_counter() - began)
        return response


class Rows:
    """A collector for one scrape."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._clusters()
        yield from self._work()
        yield from self._queues()
        heads = _family("timeline_revisions", "Sum of the streams' revisions; its rate is that of changes", "kind")
        for kind, total in Stream.objects.values_list("kind").annotate(Sum("revision")).order_by("kind"):
            heads.add_metric([kind], total)
        yield heads

    def _clusters(self) -> Iterator[GaugeMetricFamily]:
        clusters = _family("clusters", "Clusters by status", "status")
        for status, count in Cluster.objects.values_list("status").annotate(Count("pk")).order_by("status"):
            clusters.add_metric([status], count)
        yield clusters
        ready = Q(status=Cluster.Status.READY)
        sums = {f"{what}_{kind}": Sum(f"{what}_{kind}_gpus", default=0) for what in ("desired", "allocated") for kind in KINDS}
        found = Cluster.objects.aggregate(
            oldest=Min("proved_to", filter=ready), unreachable=Count("pk", filter=Q(unreachable_since__isnull=False)), **sums
        )
        gpus = _family("gpus", "GPUs of all clusters", "compute_class", "what")
        for key in sums:
            what, kind = key.split("_")
            gpus.add_metric([kind, what], found[key])
        yield gpus
        yield _one("clusters_unreachable", "Clusters whose Kubernetes does not answer", found["unreachable"])
        yield _one("watch_lag_seconds", "Age of the oldest picture among ready clusters", self._age(found["oldest"]))

    def _work(self) -> Iterator[GaugeMetricFamily]:
        due = _family("work_due", "Rows that wait for a worker", "kind")
        age = _family("work_due_age_seconds", "How long the oldest of them waits", "kind")
        for kind, model in (("drains", Drain), ("pools", Pool)):
            found = model._default_manager.filter(due_at__lte=self.now).aggregate(count=Count("pk"), oldest=Min("due_at"))
            due.add_metric([kind], found["count"])
            age.add_metric([kind], self._age(found["oldest"]))
        yield due
        yield age
        drains = _family("drains_open", "Drains that have not ended", "state")
        rows = Drain.objects.filter(state__in=Drain.OPEN)
        for state, count in rows.values_list("state").annotate(Count("pk")).order_by("state"):
            drains.add_metric([state], count)
        yield drains
        yield _one("drains_overdue", "Open drains past their deadline", rows.filter(deadline__lt=self.now).count())
        yield _one("automation_on", "1 while automation may begin something", int(automation().on))

    def _queues(self) -> Iterator[GaugeMetricFamily]:
        """Where Redis does not answer, the queues are left out, because their length is not known; `redis_up` says so."""
        lengths = _family("queue_length", "Hints that wait in Redis; rows say what is due", "queue")
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=LIMIT, socket_connect_timeout=LIMIT) as client:
                for queue in QUEUES:
                    lengths.add_metric([queue], int(client.llen(queue)))
        except (redis.RedisError, OSError):
            yield _one("redis_up", "1 if Redis answers", 0)
            return
        yield _one("redis_up", "1 if Redis answers", 1)
        yield lengths

    def _age(self, since: datetime | None) -> float:
        return max(0.0, (self.now - since).total_seconds()) if since else 0.0


KINDS = ("standard", "preemptible")


def _family(name: str, says: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"halftide_{name}", says, labels=labels)


def _one(name: str, says: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"halftide_{name}", says, value=value)


def rows_now() -> Rows:
    return Rows(timezone.now())
