"""From a fleet file and a Prometheus to a decision, and the text of the fleet file after it."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from rayhelm.fleet.document import parse_document, read_text
from rayhelm.fleet.edit_text import set_number
from rayhelm.fleet.load import load_fleet, parse_fleet
from rayhelm.fleet.yaml_nodes import dotted
from rayhelm.live.cost.client import PrometheusClient
from rayhelm.live.cost.periods import Period
from rayhelm.live.promotion.commit import build_message
from rayhelm.live.promotion.decide import NextWeight, Wanted, choose_weight
from rayhelm.live.promotion.exact_tests import POWER, SIGNIFICANCE
from rayhelm.live.promotion.judge import Criterion, judge_version
from rayhelm.live.promotion.measure import Measured, measure_versions
from rayhelm.live.promotion.quality import QualityResult, read_quality
from rayhelm.live.promotion.report import CriterionReport, PromotionReport, QualityReport
from rayhelm.live.promotion.subject import Subject, find_subject
from rayhelm.planner.planner import plan_fleet

__all__ = ["decide_promotion"]


def decide_promotion(
    client: PrometheusClient, fleet: Path, model: str, quality: Path | None, wanted: Wanted, period: Period
) -> tuple[PromotionReport, str, str]:
    """Return the report, and the text of the fleet file before and after. Raises FleetError and MissingError."""
    text = read_text(fleet)
    plan = plan_fleet(load_fleet(fleet))
    with plan.source.joined():
        subject = find_subject(model, plan)
    # An edit that the file does not allow is reported before the queries.
    other = 0 if subject.weight else wanted.steps[0]
    set_number(text, str(fleet), subject.weight_path, other)
    result = read_quality(quality, subject) if quality else None
    measured = measure_versions(client, subject, period)
    criteria = judge_version(subject, measured)
    choice = choose_weight(subject, measured, criteria, result, wanted, period)
    report = _build_report(fleet, subject, measured, criteria, result, choice, wanted, period)
    if choice.weight == subject.weight:
        return report, text, text
    changed = set_number(text, str(fleet), subject.weight_path, choice.weight)
    parse_fleet(parse_document(changed, str(fleet)))
    diff = "".join(_list_diff(text, changed, str(fleet)))
    return report.model_copy(update={"diff": diff, "commit": build_message(report)}), text, changed


def _list_diff(before: str, after: str, file: str) -> list[str]:
    lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), file, file)
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def _build_report(
    fleet: Path,
    subject: Subject,
    measured: Measured,
    criteria: Sequence[Criterion],
    quality: QualityResult | None,
    choice: NextWeight,
    wanted: Wanted,
    period: Period,
) -> PromotionReport:
    return PromotionReport(
        fleet=str(fleet),
        model=subject.model,
        served_as=subject.name,
        version=subject.version,
        path=dotted(subject.weight_path),
        decision=choice.decision,
        weight=subject.weight,
        next_weight=choice.weight,
        reason=choice.reason,
        more_requests=choice.more_requests,
        start=max(period.start, measured.data_from),
        end=period.end,
        missing_minutes=int(measured.missing.total_seconds() // 60),
        warnings=tuple(_warn_of_load(subject, measured, choice, period)),
        significance=SIGNIFICANCE,
        power=POWER,
        criteria=tuple(_report_criterion(each, subject) for each in criteria),
        quality=_report_quality(quality, wanted.quality_share) if quality else None,
    )


def _warn_of_load(subject: Subject, measured: Measured, choice: NextWeight, period: Period) -> Iterator[str]:
    """Yield a warning if the next weight is more than the replicas of the version are planned for."""
    seconds = (period.end - max(period.start, measured.data_from) - measured.missing).total_seconds()
    if subject.planned_rate is None or choice.weight <= subject.weight or seconds <= 0:
        return
    expected = measured.all_responses / seconds * choice.weight / 100
    if expected > subject.planned_rate:
        yield (
            f"at {choice.weight} % `{subject.model}` gets about {expected:.2g} requests/s, and its replicas are planned"
            f" for {subject.planned_rate:g}: raise its `traffic.requestsPerSecond` first, and lower that of"
            f" `{subject.name}` later"
        )


def _report_criterion(criterion: Criterion, subject: Subject) -> CriterionReport:
    limits = {"ttft": subject.slo.ttft, "tpot": subject.slo.tpot}
    return CriterionReport.model_validate(
        {
            "name": criterion.name,
            "limit_s": limits.get(criterion.name),
            "allowed_share": None if criterion.allowed is None else round(criterion.allowed, 9),
            "requests": criterion.new.requests,
            "failures": criterion.new.failures,
            "present_requests": criterion.present.requests,
            "present_failures": criterion.present.failures,
            "needed_requests": criterion.needed,
            "found_share": round(criterion.found, 9),
            "verdict": criterion.verdict.value,
        }
    )


def _report_quality(quality: QualityResult, share: float) -> QualityReport:
    is_enough = quality.passed >= share * quality.total
    return QualityReport(passed=quality.passed, failed=quality.failed, needed_share=share, is_enough=is_enough)
