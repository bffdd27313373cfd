"""Messages that are due: claimed, sent side by side, and what came of each written down.

A claim is a row's state with a time and a fence, committed before anything is sent; whoever finds a claim that has run out takes
it over and raises the fence, and a late writer's answer is void. So two workers send a message once. A worker that dies between
sending and writing leaves a message that may have arrived: it is sent again, with the same delivery id, by which a receiver
can tell. A webhook gets one message at a time, the oldest first.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from yarl import URL

from console.accounts.sealing import opened
from console.timeline.changes import change
from console.webhooks import health
from console.webhooks.models import Delivery, Webhook
from console.webhooks.post import post
from console.webhooks.signing import DELIVERY, SIGNATURE, signature
from console.webhooks.tries import MOST_TRIES, PAUSES, Answer, next_try

BATCH = 16  # messages under way at once
LOOKED_AT = 200  # due rows among which a batch is chosen
CLAIM = timedelta(seconds=30)  # several times what a try may take
KEPT = 10  # tries that a row remembers

State = Delivery.State
Post = Callable[..., Awaitable[Answer]]
log = logging.getLogger(__name__)

UNREADABLE = "The stored address cannot be read: HALFTIDE_ENCRYPTION_KEY is not the one it was stored with."
CUT_OFF = "A worker stopped in the middle of this try: whether it arrived is not known."


@dataclass(frozen=True)
class Claim:
    """A message that is this worker's to send, with everything that sending needs."""

    delivery: UUID
    webhook: UUID
    fence: int
    address: str
    keys: tuple[str, ...]
    body: str


@dataclass(frozen=True)
class Tried:
    answer: Answer
    ms: int


def is_due(now: datetime) -> Q:
    """Messages that may go now: whose webhook is on and whose receiver has not asked for a pause."""
    ready = Q(webhook__waits_until=None) | Q(webhook__waits_until__lte=now)
    return ready & Q(due_at__lte=now, webhook__on=True)


def send_due(now: datetime, send: Post = post, dice: Callable[[], float] = random.random) -> int:
    """Send one batch and write what came of it; the number of messages in it."""
    claims = claim(now)
    for one, tried in zip(claims, asyncio.run(_send_all(claims, now, send)), strict=True):
        settle(one, tried, now, dice())
    return len(claims)


def claim(now: datetime) -> list[Claim]:
    """Take due messages, one of each webhook; rows that another worker is taking at this moment are passed over."""
    claims: dict[UUID, Claim] = {}
    spent: list[Claim] = []
    with transaction.atomic():
        rows = Delivery.objects.select_for_update(skip_locked=True, of=("self",)).select_related("webhook")
        for row in rows.filter(is_due(now)).order_by("due_at", "pk")[:LOOKED_AT]:
            if row.webhook_id in claims or len(claims) >= BATCH:
                continue
            one = _take(row, now)
            if row.state == State.SENDING and row.tries >= _most(row):
                spent.append(one)  # its last try was cut off
            else:
                claims[row.webhook_id] = one
                row.state, row.tries = State.SENDING, row.tries + 1
            row.save(update_fields=["state", "due_at", "fence", "tries", "log"])
    for one in spent:
        settle(one, Tried(Answer(None, CUT_OFF), 0), now, 0)
    return list(claims.values())


def _take(row: Delivery, now: datetime) -> Claim:
    webhook = row.webhook
    row.fence, row.due_at = row.fence + 1, now + CLAIM
    if row.state == State.SENDING and row.tries < _most(row):
        row.log = [*row.log, _line(now, Answer(None, CUT_OFF), None)][-KEPT:]
    old = webhook.old_secret if webhook.old_until and now < webhook.old_until else ""
    keys = tuple(key for key in (opened(webhook.secret), opened(old)) if key)
    return Claim(row.pk, webhook.pk, row.fence, opened(webhook.address), keys, row.body)


def _most(row: Delivery) -> int:
    """A test answers a question that somebody asks now, so it is tried once."""
    return MOST_TRIES if row.group else 1


async def _send_all(claims: Sequence[Claim], now: datetime, send: Post) -> list[Tried]:
    return await asyncio.gather(*(_send_one(one, now, send) for one in claims))


async def _send_one(one: Claim, now: datetime, send: Post) -> Tried:
    if not (one.address and one.keys):
        return Tried(Answer(None, UNREADABLE), 0)
    body = one.body.encode()
    headers = {DELIVERY: str(one.delivery), SIGNATURE: signature(one.keys, now, body)}
    started = monotonic()
    answer = await send(URL(one.address), body, headers, settings.WEBHOOK_ALLOW, now)
    return Tried(answer, round((monotonic() - started) * 1000))


def settle(one: Claim, tried: Tried, now: datetime, dice: float) -> None:
    """Write what came of a try: delivered, again later, or given up. Nothing where the claim has passed to somebody else."""
    answer = tried.answer
    with change(now) as made:
        webhook = Webhook.objects.select_for_update().filter(pk=one.webhook).first()
        row = Delivery.objects.select_for_update().filter(pk=one.delivery, fence=one.fence, state=State.SENDING).first()
        if webhook is None or row is None:
            log.warning("delivery_overtaken", extra={"delivery": str(one.delivery)})
            return
        again = None if answer.delivered else next_try(row.tries, _most(row), answer.wait, dice, now)
        row.status, row.took_ms, row.problem = answer.status, tried.ms, answer.problem[:300]
        row.log = [*row.log, _line(now, answer, tried.ms)][-KEPT:]
        row.due_at = again
        row.state = State.DELIVERED if answer.delivered else State.FAILED if again is None else State.WAITING
        row.ended_at = now if again is None else None
        row.save(update_fields=["status", "took_ms", "problem", "log", "due_at", "state", "ended_at"])
        if answer.status in PAUSES and answer.wait:
            webhook.waits_until = now + timedelta(seconds=answer.wait)
        health.note(made, webhook, problem=answer.problem, given_up=row.state == State.FAILED, test=not row.group)
    log.info("webhook_tried", extra={"webhook": str(one.webhook), "delivery": str(one.delivery), "status": answer.status})


def _line(now: datetime, answer: Answer, ms: int | None) -> dict[str, object]:
    return {"at": now.isoformat(), "status": answer.status, "ms": ms, "problem": answer.problem, "said": answer.said}
