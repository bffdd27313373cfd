"""core/v1 and events.k8s.io/v1 show the same Events under different field names; storage keeps the core form."""

from console.simulator.values import Json

_TO_NEW = {
    "involvedObject": "regarding", "message": "note", "source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount", "reportingComponent": "reportingController",
}  # fmt: skip
_TO_CORE = {new: old for old, new in _TO_NEW.items()}


def to_new(body: Json) -> Json:
    """A stored Event in the words of events.k8s.io/v1."""
    return {_TO_NEW.get(key, key): value for key, value in body.items()}


def to_core(body: Json) -> Json:
    """An events.k8s.io/v1 Event as it is stored."""
    return {_TO_CORE.get(key, key): value for key, value in body.items()}


def completed(body: Json) -> Json:
    """The fields every core Event has, also when its writer left them out."""
    whole: Json = {"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}
    whole |= body
    whole.setdefault("reportingComponent", "")
    whole.setdefault("reportingInstance", "")
    return whole
