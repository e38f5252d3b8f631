"""Judge a version by each objective: against the share of failures that it allows, and against the present version."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rayhelm.errors import MissingError
from rayhelm.live.promotion.exact_tests import (
    LEAST_FAILURES,
    SIGNIFICANCE,
    binomial_tail,
    count_needed,
    hypergeometric_tail,
)
from rayhelm.live.promotion.measure import Measured
from rayhelm.live.promotion.subject import Subject

__all__ = ["Criterion", "Verdict", "judge_version"]

_LEAST_DIFFERENCE = 0.02
_UNKNOWN_SHARE = 0.001
"""Share of failures without an objective and without a failure of the present version."""


class Verdict(StrEnum):
    """What the tests say about one objective."""

    met = "met"
    """No test finds a failure, and there were enough requests to find one."""
    undecided = "too few requests"
    missed = "missed"
    """More failures than the objective allows, and more than the present version has, as far as it has requests."""
    worse = "worse"
    """More failures than the present version, by at least the smallest difference."""
    missed_by_both = "missed by both"
    """More failures than the objective allows, and not more than the present version has."""


@dataclass(frozen=True)
class Share:
    """Failures among requests."""

    requests: int
    failures: int

    @property
    def value(self) -> float:
        return self.failures / self.requests if self.requests else 0.0


@dataclass(frozen=True)
class Criterion:
    """One objective, and what was measured of it."""

    name: str
    allowed: float | None
    """Share of failures that the objective allows; None without an objective."""
    found: float
    """Smallest share of failures that the requests have to be enough for."""
    new: Share
    present: Share
    needed: int
    """Requests of the new version that the test needs."""
    verdict: Verdict

    @property
    def more(self) -> int:
        """Requests that are missing."""
        return max(0, self.needed - self.new.requests)


def judge_version(subject: Subject, measured: Measured) -> list[Criterion]:
    """Raises MissingError if the engines of a version that answers have no series."""
    slo, new, present = subject.slo, measured.new, measured.present
    errors = 1 - slo.availability if slo.availability else None
    found = [
        _judge(
            "server errors",
            errors,
            Share(new.responses, new.server_errors),
            Share(present.responses, present.server_errors),
        )
    ]
    if new.finished or present.finished:
        shares = Share(new.finished, new.engine_errors), Share(present.finished, present.engine_errors)
        found.append(_judge("engine errors", errors, *shares))
    late = 1 - slo.latency_share
    for name, limit, of_new, of_present in (
        ("ttft", slo.ttft, new.first_tokens, present.first_tokens),
        ("tpot", slo.tpot, new.output_tokens, present.output_tokens),
    ):
        if limit:
            found.append(_judge(name, late, _count_late(of_new, limit), _count_late(of_present, limit)))
    _check_engines(subject, found)
    return found


def _judge(name: str, allowed: float | None, new: Share, present: Share) -> Criterion:
    limit = allowed if allowed is not None else max(present.value, _UNKNOWN_SHARE)
    # Twice the share, and at least 2 percentage points more: a smaller difference would need requests of weeks.
    found = min(max(2 * limit, limit + _LEAST_DIFFERENCE), (1 + limit) / 2)
    needed = count_needed(round(limit, 9), round(found, 9))
    verdict = _find_verdict(allowed, found - limit, new, present, needed)
    return Criterion(name, allowed, found, new, present, needed, verdict)


def _find_verdict(allowed: float | None, difference: float, new: Share, present: Share, needed: int) -> Verdict:
    is_enough = new.failures >= LEAST_FAILURES
    p_of_present = hypergeometric_tail(new.failures, new.requests, present.failures, present.requests)
    is_above_present = is_enough and bool(present.requests) and p_of_present <= SIGNIFICANCE
    is_above_limit = (
        is_enough and allowed is not None and binomial_tail(new.failures, new.requests, allowed) <= SIGNIFICANCE
    )
    if is_above_limit and (is_above_present or present.requests < needed):
        return Verdict.missed
    if is_above_present and new.value - present.value >= difference:
        return Verdict.worse
    if is_above_limit:
        return Verdict.missed_by_both
    return Verdict.met if new.requests >= needed else Verdict.undecided


def _count_late(buckets: Mapping[float, int], limit: float) -> Share:
    """Count above the bucket boundary at or above the limit, as the alerts do."""
    bounds = sorted(buckets)
    if not bounds:
        return Share(0, 0)
    total = buckets[bounds[-1]]
    return Share(total, max(0, total - buckets[bounds[min(bisect_left(bounds, limit), len(bounds) - 1)]]))


def _check_engines(subject: Subject, found: list[Criterion]) -> None:
    responses = found[0].new
    unread = [each.name for each in found[1:] if not each.new.requests]
    if unread and responses.requests - responses.failures >= found[0].needed:
        names = ", ".join(sorted(service for _, service in subject.services))
        raise MissingError(
            f"the gateway has {responses.requests} responses of version `{subject.version}`, and Prometheus has no"
            f" series of its engines for {', '.join(unread)} (service {names})",
            "let it scrape the Ray pods: `scraping.kind: PodMonitor` of chart ray-service",
        )
