"""The traffic of each model: rates over windows of time, lengths, and the profile of a day."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil, floor
from statistics import fmean

from pydantic import BaseModel

from rayhelm.live.traffic.records import LogLine

__all__ = ["ModelTraffic", "TrafficLog", "summarize"]

HOUR = 3600
DAY = 24 * HOUR
REJECTED = range(400, 500)
"""Status of requests that no GPU has to serve; those that failed with 5xx are load all the same."""


class ModelTraffic(BaseModel):
    """The traffic of one model. Rates are requests per second; lengths are tokens."""

    requests: int
    rejected: int
    """Requests that the gateway refused with 4xx, such as 429. They are in no other figure."""
    first: datetime
    last: datetime
    """Arrival of the first and of the last request."""
    mean_rate: float
    peak_rate: float
    """Rate that `percentile` % of the windows do not exceed; at least the mean."""
    window_s: float
    percentile: float
    dispersion: float
    """Variance over mean of the requests in a window: 1 for independent arrivals, more for bursts."""
    input_tokens: float | None = None
    """Mean; absent if no line has tokens."""
    input_tokens_p95: float | None = None
    output_tokens: float | None = None
    output_tokens_p95: float | None = None
    cached_share: float | None = None
    """Share of the input tokens that the prefix cache of the engine had."""
    hour_dispersion: float | None = None
    """The same as `dispersion` within the hours of the log, so without the profile of the day; absent if no whole hour
    has four windows or more."""
    hourly_rates: tuple[float, ...] = ()
    """Mean rate of each hour of the day, in UTC; empty for logs of less than a day."""


@dataclass
class _Request:
    arrival: float
    status: int | None = None
    prompt: int | None = None
    cached: int = 0
    answer: int = 0


@dataclass
class TrafficLog:
    """The requests of some log files."""

    requests: dict[tuple[str, str], _Request] = field(default_factory=dict)
    """By model and id. Lines of gateway and engine with the same id are one request."""
    skipped: int = 0
    """Lines that are about no request."""

    def add(self, lines: Iterable[LogLine | None]) -> None:
        """Add the lines of a file."""
        for line in lines:
            if line is None:
                self.skipped += 1
                continue
            key = line.model, line.request_id or f"#{len(self.requests)}"
            request = self.requests.setdefault(key, _Request(line.arrival))
            request.arrival = min(request.arrival, line.arrival)
            if line.status is not None:
                request.status = line.status
            if line.prompt_tokens is not None:
                request.prompt, request.cached = line.prompt_tokens, line.cached_tokens
                # A request for several answers has a line for each.
                request.answer += line.generation_tokens


def summarize(log: TrafficLog, window_s: float, percentile: float) -> dict[str, ModelTraffic]:
    """Return the traffic of each model that has an answered request, sorted by name."""
    by_model: dict[str, list[_Request]] = {}
    for (model, _), request in log.requests.items():
        by_model.setdefault(model, []).append(request)
    found = {model: _summarize(requests, window_s, percentile) for model, requests in sorted(by_model.items())}
    return {model: traffic for model, traffic in found.items() if traffic}


def _summarize(requests: list[_Request], window_s: float, percentile: float) -> ModelTraffic | None:
    served = [each for each in requests if each.status is None or each.status not in REJECTED]
    if not served:
        return None
    arrivals = sorted(each.arrival for each in served)
    windows = _count_windows(arrivals, window_s)
    counted = [each for each in served if each.prompt is not None]
    prompts, answers = [each.prompt or 0 for each in counted], [each.answer for each in counted]
    return ModelTraffic(
        requests=len(served),
        rejected=len(requests) - len(served),
        first=datetime.fromtimestamp(arrivals[0], UTC),
        last=datetime.fromtimestamp(arrivals[-1], UTC),
        mean_rate=windows.mean / window_s,
        peak_rate=max(windows.find_percentile(percentile), windows.mean) / window_s,
        window_s=window_s,
        percentile=percentile,
        dispersion=windows.dispersion,
        input_tokens=fmean(prompts) if counted else None,
        input_tokens_p95=_find_percentile(prompts, 95) if counted else None,
        output_tokens=fmean(answers) if counted else None,
        output_tokens_p95=_find_percentile(answers, 95) if counted else None,
        cached_share=sum(each.cached for each in counted) / total if counted and (total := sum(prompts)) else None,
        hour_dispersion=_measure_dispersion(arrivals, window_s),
        hourly_rates=_measure_hours(arrivals) if arrivals[-1] - arrivals[0] >= DAY else (),
    )


@dataclass(frozen=True)
class _Windows:
    """Windows of the same length from the first to the last arrival; most can be empty."""

    counts: tuple[int, ...]
    """Requests of each window that has any, sorted."""
    number: int

    @property
    def mean(self) -> float:
        return sum(self.counts) / self.number

    @property
    def dispersion(self) -> float:
        return sum(count**2 for count in self.counts) / self.number / self.mean - self.mean

    def find_percentile(self, percentile: float) -> int:
        """Return the smallest count that `percentile` % of the windows do not exceed."""
        place = max(ceil(self.number * percentile / 100) - 1, 0) - (self.number - len(self.counts))
        return self.counts[place] if place >= 0 else 0


def _count_windows(arrivals: list[float], window_s: float) -> _Windows:
    places = Counter(floor(arrival / window_s) for arrival in arrivals)
    first, last = min(places), max(places)
    number = last - first + 1
    # The log begins and ends within a window.
    if number > 3 and (inner := {place: count for place, count in places.items() if first < place < last}):
        return _Windows(tuple(sorted(inner.values())), number - 2)
    return _Windows(tuple(sorted(places.values())), number)


def _find_percentile(values: list[int], percentile: float) -> int:
    """Return the smallest value that `percentile` % of the values do not exceed."""
    return sorted(values)[max(ceil(len(values) * percentile / 100) - 1, 0)]


def _measure_hours(arrivals: list[float]) -> tuple[float, ...]:
    counts, start = [0] * 24, arrivals[0]
    whole = floor((arrivals[-1] - start) / DAY)
    seconds = [float(whole * HOUR)] * 24
    start += whole * DAY
    while start < arrivals[-1]:
        end = min((floor(start / HOUR) + 1) * HOUR, arrivals[-1])
        seconds[floor(start / HOUR) % 24] += end - start
        start = end
    for arrival in arrivals:
        counts[floor(arrival / HOUR) % 24] += 1
    return tuple(count / time if time else 0.0 for count, time in zip(counts, seconds, strict=True))


def _measure_dispersion(arrivals: list[float], window_s: float) -> float | None:
    """Return the variance of the windows of an hour over their mean, over all whole hours with requests."""
    windows = floor(HOUR / window_s)
    first, last = floor(arrivals[0] / HOUR), floor(arrivals[-1] / HOUR)
    if windows < 4:
        return None
    hours: dict[int, Counter[int]] = {}
    for arrival in arrivals:
        hour, second = divmod(arrival, HOUR)
        if first < hour < last and second < windows * window_s:
            hours.setdefault(floor(hour), Counter())[floor(second / window_s)] += 1
    variances, means = 0.0, 0.0
    for counts in hours.values():
        mean = counts.total() / windows
        variances += (sum(count**2 for count in counts.values()) - windows * mean**2) / (windows - 1)
        means += mean
    return variances / means if means else None
