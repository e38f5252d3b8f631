"""Traffic of a model: rates, bursts, the profile of a day, and lengths of requests."""

from math import sqrt
from statistics import NormalDist
from typing import Annotated, Self

from pydantic import Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import ListOf, Record, Refusal
from rayhelm.fleet.units import Duration

__all__ = ["Burst", "Traffic"]

_HOURS = 24
_PROFILE = (0.2, 0.2, 0.1, 0.1, 0.1, 0.2, 0.3, 0.5, 0.8, 1, 1, 1, 0.9, 1, 1, 1, 0.9, 0.8, 0.6, 0.5, 0.5, 0.4, 0.3, 0.2)


class Burst(Record):
    """Bursts, as `rayhelm traffic` measures them."""

    dispersion: float = Field(ge=0, le=10_000, examples=[4])
    """Index of dispersion: variance over mean of the requests in a window, within an hour; 1 for independent
    arrivals."""
    window: Duration = 60.0
    """Length of the windows that `dispersion` was measured with."""
    percentile: float = Field(default=99, ge=50, le=99.99, examples=[95])
    """Share of the windows that the plan has replicas for, %."""

    def find_peak(self, rate: float) -> float:
        """Return the rate of a window that `percentile` % of the windows do not exceed, and at least the mean.

        Requests of a window have a mean of m = rate x window and a variance of dispersion x m. With k = m / dispersion
        their quantile is m (1 - 1/(9k) + z/(3 sqrt k))^3, the one of a gamma distribution (Wilson and Hilferty, 1931),
        and at least m + m z / sqrt k, the one of a normal distribution, which is closer for rare requests.
        """
        if not self.dispersion:
            return rate
        shape, normal = rate * self.window / self.dispersion, NormalDist().inv_cdf(self.percentile / 100)
        gamma = max(1 - 1 / (9 * shape) + normal / (3 * sqrt(shape)), 0.0)
        return rate * max(1.0, gamma**3, 1 + normal / sqrt(shape))


class Traffic(Record):
    """The load that a model is planned for, at its peak."""

    requests_per_second: float = Field(gt=0, le=1e6, examples=[3])
    """Requests per second over all replicas, at the peak; with `burst` the mean of the busiest hour."""
    input_tokens: int = Field(gt=0, le=10_000_000, examples=[1000])
    """Mean prompt length, tokens."""
    output_tokens: int | None = Field(default=None, gt=0, le=1_000_000, examples=[300])
    """Mean length of the response, tokens; absent for tasks without output tokens."""
    input_tokens_p95: int | None = Field(default=None, gt=0, le=10_000_000, examples=[4000])
    """95th percentile of the prompt length, tokens. The KV cache of a replica then has room for uneven requests."""
    output_tokens_p95: int | None = Field(default=None, gt=0, le=1_000_000, examples=[900])
    """95th percentile of the length of the response, tokens."""
    shared_prefix: float = Field(default=0.0, ge=0, le=1, examples=[0.5])
    """Share of the prompt that requests have in common (system prompt, documents). It decides the routing by prefix."""
    prefixes: int | None = Field(default=None, gt=0, le=1_000_000_000, examples=[200])
    """Number of different prefixes (system prompts, documents, conversations) behind `sharedPrefix`, requested equally
    often. The plan then computes which part of the requests finds its prefix in the KV cache of a replica. Absent: all
    of them do. If two tenants send a prefix, count it twice, unless the model has a `sharedPrefixCacheReason`."""
    burst: Burst | None = Field(default=None, examples=[{"dispersion": 4}])
    """Bursts of the arrivals: the plan has replicas for a percentile of short windows."""
    daily_profile: ListOf[Annotated[float, Field(ge=0, le=1)]] = Field(default=(), examples=[list(_PROFILE)])
    """Rate of each hour of the day, 0 to 23 UTC, as a part of `requestsPerSecond`. Replicas for the quietest hour
    always run, and autoscaling adds the others."""

    @property
    def peak_rate(self) -> float:
        """Requests per second that the replicas are planned for."""
        return self.find_peak(self.requests_per_second)

    def multiply(self, part: float) -> Self:
        """Return the traffic with a part of the requests. `peak_rate` is the same part of the whole one: bursts are
        divided too."""
        burst = self.burst and self.burst.model_copy(update={"dispersion": self.burst.dispersion * part})
        return self.model_copy(update={"requests_per_second": self.requests_per_second * part, "burst": burst})

    @property
    def quiet_rate(self) -> float | None:
        """The same for the quietest hour; None without a profile, 0 for an hour without requests."""
        least = min(self.daily_profile, default=None)
        return None if least is None else self.find_peak(self.requests_per_second * least)

    def find_peak(self, rate: float) -> float:
        return self.burst.find_peak(rate) if self.burst and rate else rate

    def find_rate(self, peak: float) -> float:
        """Return the largest `requests_per_second` whose planned rate is at most `peak`."""
        if not self.burst:
            return peak
        low, high = 0.0, peak
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.find_peak(middle) <= peak else (low, middle)
        return low

    @model_validator(mode="after")
    def _check_profile(self) -> Self:
        profile = list(self.daily_profile)
        if profile and len(profile) != _HOURS:
            whole = [*profile, *[1.0] * _HOURS][:_HOURS]
            why = "without the last ones" if len(profile) > _HOURS else "the missing ones at full load"
            raise Refusal(f"`dailyProfile` has {len(profile)} hours, and a day has 24", Fix("dailyProfile", whole, why))
        if profile and max(profile) == 0:
            raise Refusal(
                "`dailyProfile` has no request in any hour", Fix("dailyProfile", list(_PROFILE), "an example")
            )
        return self

    @model_validator(mode="after")
    def _check_prefixes(self) -> Self:
        if self.prefixes and not self.shared_prefix:
            raise Refusal(
                "`prefixes` needs the part of the prompt that they are, `sharedPrefix`", Fix("sharedPrefix", 0.5)
            )
        return self

    @model_validator(mode="after")
    def _check_percentiles(self) -> Self:
        if self.output_tokens_p95 and not self.output_tokens:
            raise Refusal(
                "`outputTokensP95` needs the mean, `outputTokens`", Fix("outputTokens", self.output_tokens_p95)
            )
        lengths = {
            "inputTokens": (self.input_tokens, self.input_tokens_p95),
            "outputTokens": (self.output_tokens, self.output_tokens_p95),
        }
        for key, (mean, p95) in lengths.items():
            if mean and p95 and p95 < mean:
                raise Refusal(f"`{key}P95` is {p95}, below the mean of {mean} tokens", Fix(f"{key}P95", mean))
        return self
