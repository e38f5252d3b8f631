"""Requests in log files: lines of the gateway and of the engine, and public traces of requests."""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rayhelm.runtime.engine_log import MESSAGE

__all__ = ["LogLine", "TraceError", "read_lines"]

_WRAPPERS = ("log", "message", "body")
"""Keys below which agents put the original line."""
_TRACE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
"""Columns of the traces of Azure/AzurePublicDataset."""
TRACE_MODEL = "model"
"""Name of the model of a trace, which names none."""


class TraceError(Exception):
    """A CSV trace whose header or whose every row cannot be read."""


@dataclass(frozen=True)
class LogLine:
    """One line about one request."""

    model: str
    arrival: float
    """Unix seconds."""
    request_id: str
    status: int | None = None
    """HTTP status; -1 if the client left before it; absent in lines of the engine."""
    prompt_tokens: int | None = None
    cached_tokens: int = 0
    generation_tokens: int = 0


def read_lines(lines: Iterable[str]) -> Iterator[LogLine | None]:
    """Yield each request of a log, and None for each line that is about none. Raises TraceError."""
    found = iter(lines)
    first = next(found, None)
    if first is None:
        return
    if first.lstrip("\ufeff").startswith(_TRACE[0]):
        yield from _read_trace(first, found)
        return
    yield _read_line(first)
    for line in found:
        yield _read_line(line)


def _read_line(line: str) -> LogLine | None:
    """Also of a line with a prefix, such as `kubectl logs --prefix` writes."""
    start = line.find("{")
    if start < 0:
        return None
    try:
        return _read_record(json.loads(line[start:]))
    except (ValueError, RecursionError):
        return None


def _read_record(record: object) -> LogLine | None:
    if not isinstance(record, dict):
        return None
    for key in _WRAPPERS:
        inner = record.get(key)
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            return _read_line(inner)
        if isinstance(inner, dict):
            return _read_record(inner)
    if record.get("message") == MESSAGE:
        return _read_engine(record)
    return _read_gateway(record) if "termination_state" in record else None


def _read_engine(record: dict[str, Any]) -> LogLine | None:
    model, arrival = record.get("model"), _find_arrival(record)
    if not isinstance(model, str) or not model or arrival is None:
        return None
    return LogLine(
        model=model,
        arrival=arrival,
        request_id=str(record.get("request_id", "")),
        prompt_tokens=_as_count(record.get("prompt_tokens")),
        cached_tokens=_as_count(record.get("cached_tokens")) or 0,
        generation_tokens=_as_count(record.get("generation_tokens")) or 0,
    )


def _read_gateway(record: dict[str, Any]) -> LogLine | None:
    model, arrival, status = record.get("model"), _find_arrival(record), record.get("status")
    if not isinstance(model, str) or model in ("", "-") or arrival is None or not isinstance(status, int):
        return None
    return LogLine(model=model, arrival=arrival, request_id=str(record.get("request_id", "")), status=status)


def _find_arrival(record: dict[str, Any]) -> float | None:
    """Return the time of the line less the duration of the request: both logs are written at the end."""
    try:
        ended = datetime.fromisoformat(str(record.get("time")))
    except ValueError:
        return None
    if ended.tzinfo is None:
        ended = ended.replace(tzinfo=UTC)
    duration = record.get("total_ms")
    return ended.timestamp() - (max(duration, 0) / 1000 if isinstance(duration, (int, float)) else 0)


def _as_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _read_trace(header: str, lines: Iterable[str]) -> Iterator[LogLine | None]:
    columns = next(csv.reader([header.lstrip("\ufeff")]))
    if missing := [name for name in _TRACE if name not in columns]:
        raise TraceError(f"line 1: the trace has no column {' and none '.join(missing)}; it needs {', '.join(_TRACE)}")
    wrong, is_any_right = "", False
    for number, row in enumerate(csv.DictReader(lines, fieldnames=columns)):
        try:
            # Seven digits of a second are more than Python reads.
            time = datetime.fromisoformat(str(row["TIMESTAMP"])[:26]).replace(tzinfo=UTC).timestamp()
            prompt, answer = _parse_count(row["ContextTokens"]), _parse_count(row["GeneratedTokens"])
        except (TypeError, ValueError) as error:
            wrong = wrong or f"line {number + 2}: {error}"
            yield None
            continue
        is_any_right = True
        yield LogLine(TRACE_MODEL, time, str(number), prompt_tokens=prompt, generation_tokens=answer)
    if wrong and not is_any_right:
        raise TraceError(f"no row of the trace is a request; {wrong}")


def _parse_count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError(f"{count} tokens")
    return count
