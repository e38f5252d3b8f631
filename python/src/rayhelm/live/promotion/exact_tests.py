"""Exact tests of shares, and the requests that they need. No approximation: failures are few.

* `binomial_tail`: the p-value of the one-sided binomial test: is the share of failures above a limit?
* `hypergeometric_tail`: the p-value of Fisher's exact test, one-sided: is the share of failures of one group above that
  of another group?

Source: A. Agresti, Categorical Data Analysis, chapters 1 (exact small-sample inference) and 3 (Fisher's exact test).
Both sum the terms of the distribution from the first one on, each from its neighbor.
"""

from collections.abc import Callable
from functools import lru_cache
from math import exp, lgamma, log, log1p

__all__ = ["LEAST_FAILURES", "POWER", "SIGNIFICANCE", "binomial_tail", "count_needed", "hypergeometric_tail"]

SIGNIFICANCE = 0.01
"""Largest p-value that counts: so often, at most, a test finds a difference where there is none."""
POWER = 0.9
"""So often, at least, the binomial test finds the smallest difference that it was asked for."""
LEAST_FAILURES = 3
"""One or two failures decide nothing, whatever their p-value: the end of one pod can cause them."""
_NEGLIGIBLE = 1e-17


def binomial_tail(failures: int, requests: int, share: float) -> float:
    """Return the probability of at least so many failures, if each request fails with the probability `share`."""
    if failures <= 0 or share >= 1:
        return 1.0
    if share <= 0 or failures > requests:
        return 0.0
    odds = share / (1 - share)
    if failures > requests * share:
        first = _binomial_term(failures, requests, share)
        return _sum_terms(first, lambda n: odds * (requests - failures - n) / (failures + n + 1))
    first = _binomial_term(failures - 1, requests, share)
    below = _sum_terms(first, lambda n: (failures - 1 - n) / (requests - failures + 2 + n) / odds)
    return max(0.0, 1 - below)


def hypergeometric_tail(failures: int, requests: int, other_failures: int, other_requests: int) -> float:
    """Return the probability that at least so many of all failures are among `requests`, if these fail as often as the
    other ones."""
    total, all_requests = failures + other_failures, requests + other_requests
    if failures <= max(0, total - other_requests):
        return 1.0
    first = exp(
        _log_choose(requests, failures) + _log_choose(other_requests, other_failures) - _log_choose(all_requests, total)
    )

    def ratio(n: int) -> float:
        here = failures + n
        return (requests - here) * (total - here) / ((here + 1) * (other_requests - total + here + 1))

    return min(1.0, _sum_terms(first, ratio))


@lru_cache
def count_needed(limit: float, missed: float) -> int:
    """Return the requests with which the binomial test against `limit` finds a share of failures of `missed` with the
    probability POWER: so many, and any larger number.

    With each failure more that the test requires its power drops a little, so the number is the first after the last
    drop below POWER.
    """
    required = LEAST_FAILURES
    while binomial_tail(required + 1, _count_most(required, limit) + 1, missed) < POWER:
        required += 1
    low, high = required, _count_most(required, limit) + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_tail(required, middle, missed) >= POWER else (middle + 1, high)
    return low


def _count_most(required: int, limit: float) -> int:
    """Return the most requests among which so many failures are significantly more than `limit`."""
    low, high = required, required
    while binomial_tail(required, high * 2, limit) <= SIGNIFICANCE:
        high *= 2
    low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if binomial_tail(required, middle, limit) <= SIGNIFICANCE else (low, middle)
    return low


def _sum_terms(first: float, ratio: Callable[[int], float]) -> float:
    """Sum terms until the rest is negligible; the n-th is followed by one that is `ratio(n)` times as large."""
    total = term = first
    number = 0
    while term > 0:
        step = ratio(number)
        term *= step
        total += term
        number += 1
        if step < 1 and term < total * _NEGLIGIBLE:
            break
    return total


def _binomial_term(failures: int, requests: int, share: float) -> float:
    return exp(_log_choose(requests, failures) + failures * log(share) + (requests - failures) * log1p(-share))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
