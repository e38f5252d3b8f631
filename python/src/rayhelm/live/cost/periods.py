"""Periods of a report, in UTC: calendar months, or the last hours."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rayhelm.errors import UsageError

__all__ = ["HOUR", "MINUTE", "SHORTEST", "Period", "last_minutes", "last_period", "month_period", "split_into_chunks"]

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
_CHUNK = timedelta(days=1)
"""One query asks for so much: 1,440 points at most, of the 11,000 that Prometheus returns."""
_UNITS = {"m": MINUTE, "h": HOUR, "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=400)
SHORTEST = 10 * MINUTE
"""Some scrapes of each target, also if Prometheus scrapes once a minute."""


@dataclass(frozen=True)
class Period:
    """From `start` until `end`, whole hours; whole minutes for `rayhelm promote`."""

    start: datetime
    end: datetime
    month: str | None = None
    """`2026-10` for a calendar month, also if it has not ended."""

    @property
    def hours(self) -> int:
        return (self.end - self.start) // HOUR

    @property
    def minutes(self) -> int:
        return (self.end - self.start) // MINUTE

    @property
    def step_s(self) -> int:
        """Seconds between two samples of a gauge."""
        return 60 if self.end - self.start <= timedelta(days=2) else 300


def month_period(text: str, now: datetime) -> Period:
    """Return a calendar month; the current one until the last full hour. Raises UsageError."""
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text):
        raise UsageError(f"`--month {text}` is not a month; write it like `--month {now:%Y-%m}`")
    start = datetime(int(text[:4]), int(text[5:]), 1, tzinfo=UTC)
    if start > now:
        raise UsageError(f"`--month {text}` is in the future; the current month is `--month {now:%Y-%m}`")
    end = min((start + timedelta(days=32)).replace(day=1), now.replace(minute=0, second=0, microsecond=0))
    if end == start:
        raise UsageError(f"`--month {text}` has no full hour yet; write for example `--last 1d`")
    return Period(start, end, month=text)


def last_period(text: str, now: datetime) -> Period:
    """Return the last hours, days or weeks. Raises UsageError."""
    length = _read_length(text, "hdw")
    if not length or length > _LONGEST:
        raise UsageError(f"`--last {text}` is not a period of at most 400 days; write it like `--last 30d`")
    return _end_at(now, length)


def last_minutes(text: str, now: datetime) -> Period:
    """Return the last minutes, hours, days or weeks. Raises UsageError."""
    length = _read_length(text, "mhdw")
    if not length or not SHORTEST <= length <= _LONGEST:
        raise UsageError(
            f"`--last {text}` is not a period from 10 minutes to 400 days; write it like `--last 30m` or `--last 6h`"
        )
    return _end_at(now, length)


def _read_length(text: str, units: str) -> timedelta | None:
    match = re.fullmatch(rf"([1-9]\d{{0,3}})([{units}])", text)
    return int(match[1]) * _UNITS[match[2]] if match else None


def _end_at(now: datetime, length: timedelta) -> Period:
    end = now.replace(second=0, microsecond=0)
    return Period(end - length, end)


def split_into_chunks(period: Period) -> Iterator[Period]:
    """Yield the period in parts that a Prometheus with default limits answers."""
    start = period.start
    while start < period.end:
        end = min(start + _CHUNK, period.end)
        yield Period(start, end)
        start = end
