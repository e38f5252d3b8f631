"""Run the checks. A check that may not read something becomes a finding with the missing right."""

from collections.abc import Callable, Iterable

from rayhelm.errors import MissingError, RayhelmError
from rayhelm.live.cluster.reader import ForbiddenError, ReadError
from rayhelm.live.doctor.access import describe_rule
from rayhelm.live.doctor.check import Check, load_checks
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.failures import describe_malformed, locate
from rayhelm.live.doctor.finding import CheckResult, CheckState, DoctorReport, Finding, Severity

__all__ = ["run_checks"]

_ORDER = list(Severity)


def run_checks(
    facts: Facts, show: Callable[[str], None] = lambda text: None, wanted: Iterable[str] | None = None
) -> DoctorReport:
    """Run all checks, or those of `wanted`, and return their findings, the critical ones first."""
    checks = {name: check for name, check in load_checks().items() if wanted is None or name in wanted}
    results: list[CheckResult] = []
    findings: list[Finding] = []
    runnable = {}
    for name, check in checks.items():
        if why := _find_reason_to_skip(check, facts):
            results.append(CheckResult(id=name, title=check.title, state=CheckState.skipped, why=why))
        else:
            runnable[name] = check
    facts.prefetch({kind for check in runnable.values() for kind in check.reads}, show)
    for name, check in runnable.items():
        show(check.title)
        result, found = _run_check(name, check, facts)
        results.append(result)
        findings += found
    findings.sort(key=lambda each: (_ORDER.index(each.severity or Severity.warning), each.check, each.object))
    results.sort(key=lambda each: each.id)
    return DoctorReport(cluster=facts.reader.name, checks=tuple(results), findings=tuple(findings))


def _find_reason_to_skip(check: Check, facts: Facts) -> str:
    if check.needs_fleet and not facts.rendered:
        return "needs the fleet file: rayhelm doctor FLEET"
    if check.needs_prometheus and not facts.prometheus:
        return "needs Prometheus: --prometheus URL"
    return ""


def _run_check(name: str, check: Check, facts: Facts) -> tuple[CheckResult, list[Finding]]:
    left_out = [describe_malformed(error) for kind in check.reads for error in facts.malformed.get(kind, [])]
    try:
        found = [
            each.model_copy(update={"check": name, "severity": each.severity or check.severity})
            for each in (*left_out, *check.find(facts))
        ]
    except ReadError as error:
        finding = _describe_refusal(name, check, error)
        return CheckResult(id=name, title=check.title, state=CheckState.not_checked, why=str(error)), [finding]
    except MissingError as error:
        if "helm" not in error.what and not check.needs_prometheus:
            raise
        finding = Finding(
            check=name,
            severity=Severity.warning,
            object="rayhelm doctor",
            evidence=error.what,
            cause=f"could not check: {check.title}",
            fix=error.how or "# see the evidence",
        )
        return CheckResult(id=name, title=check.title, state=CheckState.not_checked, why=error.what), [finding]
    except RayhelmError as error:
        return _describe_end(name, check, str(error), left_out)
    except Exception as error:
        # A check that fails must not hide the others.
        return _describe_end(name, check, f"check failed: {locate(error)}", left_out)
    state = CheckState.findings if found else CheckState.ok
    return CheckResult(id=name, title=check.title, state=state), list(dict.fromkeys(found))


def _describe_end(name: str, check: Check, evidence: str, left_out: list[Finding]) -> tuple[CheckResult, list[Finding]]:
    """Return the result of a check that failed, with what is known of its objects."""
    finding = Finding(
        severity=Severity.warning,
        object="rayhelm doctor",
        evidence=evidence,
        cause=f"could not check: {check.title}",
        fix=f"rayhelm doctor --check {name}",
    )
    result = CheckResult(id=name, title=check.title, state=CheckState.not_checked, why=evidence)
    return result, [each.model_copy(update={"check": name}) for each in (*left_out, finding)]


def _describe_refusal(name: str, check: Check, error: ReadError) -> Finding:
    is_forbidden = isinstance(error, ForbiddenError)
    return Finding(
        check=name,
        severity=Severity.warning,
        object="rayhelm doctor",
        evidence=str(error),
        cause=f"could not check: {check.title}" + (": the account may not read this" if is_forbidden else ""),
        fix=describe_rule(check.reads) if is_forbidden else "kubectl get --raw /readyz?verbose",
    )
