"""The next weight of a version."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from rayhelm.live.cost.periods import Period
from rayhelm.live.promotion.exact_tests import SIGNIFICANCE, binomial_tail
from rayhelm.live.promotion.judge import Criterion, Verdict
from rayhelm.live.promotion.measure import Measured
from rayhelm.live.promotion.quality import QualityResult
from rayhelm.live.promotion.report import PromotionDecision
from rayhelm.live.promotion.subject import Subject

__all__ = ["NextWeight", "Wanted", "choose_weight"]

_MISSED = (Verdict.missed, Verdict.worse)


@dataclass(frozen=True)
class Wanted:
    """Options of the command."""

    steps: tuple[int, ...]
    """Weights, rising."""
    quality_share: float
    """Share of the golden prompts that have to pass."""
    is_start: bool
    """Leave the weight 0."""
    ignores_share: bool
    """Clients select versions themselves, so the share of the requests says nothing about the weight."""


@dataclass(frozen=True)
class NextWeight:
    """A decision with its reason."""

    decision: PromotionDecision
    weight: int
    reason: str
    more_requests: int = 0


def choose_weight(
    subject: Subject,
    measured: Measured,
    criteria: Sequence[Criterion],
    quality: QualityResult | None,
    wanted: Wanted,
    period: Period,
) -> NextWeight:
    """What is worst decides: golden prompts, missed objectives, missing endpoints, then missing requests."""
    weight = subject.weight

    def keep(reason: str, more: int = 0) -> NextWeight:
        return NextWeight(PromotionDecision.keep, weight, reason, more)

    failed = _describe_quality(quality, wanted.quality_share)
    if not weight and not wanted.is_start:
        return keep("the weight is 0, and --start begins with the first step")
    if failed:
        return NextWeight(PromotionDecision.roll_back, 0, failed) if weight else keep(failed)
    if weight and (missed := [each for each in criteria if each.verdict in _MISSED]):
        return NextWeight(PromotionDecision.roll_back, 0, "; ".join(map(describe_missed, missed)))
    if not measured.endpoints:
        return keep(_describe_endpoints(subject, measured))
    if not weight:
        return _rise(subject, wanted.steps, "it starts: an endpoint is available")
    if both := [each for each in criteria if each.verdict is Verdict.missed_by_both]:
        names = ", ".join(each.name for each in both)
        return keep(f"both versions miss the objective for {names}, so the version is not the cause")
    if not (wanted.ignores_share or subject.is_pinned) and (reason := _describe_share(subject, measured)):
        return keep(reason)
    if more := max(each.more for each in criteria):
        return keep(f"{more} more requests needed{_describe_wait(more, criteria, period)}", more)
    if weight >= wanted.steps[-1]:
        reason = f"all objectives are met at the last step, {weight} %"
        return NextWeight(PromotionDecision.finished, weight, reason)
    return _rise(subject, wanted.steps, "all objectives are met")


def _rise(subject: Subject, steps: Sequence[int], reason: str) -> NextWeight:
    following = next(step for step in steps if step > subject.weight)
    if following > subject.most:
        left = f"the other versions of `{subject.name}` leave {subject.most} % of the requests"
        return NextWeight(
            PromotionDecision.keep, subject.weight, f"the next step is {following} %, and {left}: lower their weights"
        )
    return NextWeight(PromotionDecision.promote, following, reason)


def describe_missed(criterion: Criterion) -> str:
    """One line about an objective that is missed."""
    new, present = criterion.new, criterion.present
    allowed = "" if criterion.allowed is None else f", allowed {criterion.allowed:.2%}"
    beside = f"; present version {present.failures} of {present.requests} ({present.value:.2%})"
    verb = "fail" if criterion.name.endswith("errors") else "are late"
    return f"{criterion.name}: {new.failures} of {new.requests} {verb} ({new.value:.2%}{allowed}){beside}"


def _describe_quality(quality: QualityResult | None, share: float) -> str:
    if quality is None or quality.passed >= share * quality.total:
        return ""
    return f"quality: {quality.passed} of {quality.total} golden prompts passed, and {share:.0%} have to pass"


def _describe_endpoints(subject: Subject, measured: Measured) -> str:
    if measured.endpoints is None:
        return f"the gateway has no version `{subject.version}` yet: render and deliver the fleet file"
    return f"no endpoint of version `{subject.version}` is available"


def _describe_share(subject: Subject, measured: Measured) -> str:
    """Say that the version gets less than half of its weight: this weight was not tested."""
    total, own = measured.all_responses, measured.new.responses
    half = subject.weight / 200
    if not total or 1 - binomial_tail(own + 1, total, half) > SIGNIFICANCE:
        return ""
    return (
        f"the gateway sent it {own / total:.1%} of the requests and its weight is {subject.weight} %: the weight is not"
        " delivered yet, or the period began before it (--last), or clients select versions (--ignore-share)"
    )


def _describe_wait(more: int, criteria: Sequence[Criterion], period: Period) -> str:
    slowest = max(criteria, key=lambda each: each.more)
    if not slowest.new.requests:
        return f": {slowest.name} has none in {period.minutes} minutes"
    hours = (period.end - period.start) / timedelta(hours=1) * (more / slowest.new.requests)
    return (
        f" for {slowest.name} ({slowest.new.requests} of {slowest.needed}): about {max(hours, 0.1):.1f} h at this rate"
    )
