"""Periods of a report, in UTC: calendar months, or the last hours."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rayhelm.errors import UsageError

__all__ = ["Period", "last_period", "month_period", "split_into_chunks"]

HOUR = timedelta(hours=1)
_CHUNK = timedelta(days=1)
"""One query asks for so much: 1,440 points at most, of the 11,000 that Prometheus returns."""
_UNITS = {"h": HOUR, "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=400)


@dataclass(frozen=True)
class Period:
    """From `start` until `end`, whole hours."""

    start: datetime
    end: datetime
    month: str | None = None
    """`2026-10` for a calendar month, also if it has not ended."""

    @property
    def hours(self) -> int:
        return (self.end - self.start) // HOUR

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
    match = re.fullmatch(r"([1-9]\d{0,3})([hdw])", text)
    if not match or int(match[1]) * _UNITS[match[2]] > _LONGEST:
        raise UsageError(f"`--last {text}` is not a period of at most 400 days; write it like `--last 30d`")
    end = now.replace(second=0, microsecond=0)
    return Period(end - int(match[1]) * _UNITS[match[2]], end)


def split_into_chunks(period: Period) -> Iterator[Period]:
    """Yield the period in parts that a Prometheus with default limits answers."""
    start = period.start
    while start < period.end:
        end = min(start + _CHUNK, period.end)
        yield Period(start, end)
        start = end
