"""Structured logs: one JSON object a line, a constant event name, data as fields. Ids, not objects; never a secret."""

import json
import logging
from datetime import UTC, datetime

KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """What was passed as `extra` stands beside time, level, logger and event."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line.update({key: value for key, value in vars(record).items() if key not in KNOWN})
        if request_id := getattr(line.get("request"), "request_id", None):
            line["request_id"] = request_id  # as the error page says it
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
