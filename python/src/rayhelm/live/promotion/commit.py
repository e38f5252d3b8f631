"""The message of a commit, and of a pull request: figures, tests, reason."""

from collections.abc import Iterator

from rayhelm.live.promotion.report import CommitMessage, CriterionReport, PromotionDecision, PromotionReport

__all__ = ["build_message", "describe_counts", "describe_name"]

_LONGEST = 72


def build_message(report: PromotionReport) -> CommitMessage:
    """Build the message of a changed weight; the body is Markdown."""
    verb = "Roll back" if report.decision is PromotionDecision.roll_back else "Promote"
    of = f"version {report.version} of {report.served_as}"
    subject = f"{verb} {of} to {report.next_weight} %"
    if len(subject) > _LONGEST:
        subject = f"{verb} a version to {report.next_weight} %"
    return CommitMessage(subject=subject, body="\n".join(_list_lines(report)) + "\n")


def _list_lines(report: PromotionReport) -> Iterator[str]:
    yield f"`{report.path}`: {report.weight} -> {report.next_weight}, because {report.reason}."
    for warning in report.warnings:
        yield ""
        yield f"**Warning**: {warning}."
    if quality := report.quality:
        total = quality.passed + quality.failed
        yield ""
        yield f"Golden prompts: {quality.passed} of {total} passed; {quality.needed_share:.0%} have to pass."
    if not report.criteria:
        return
    yield ""
    yield f"Failures of requests from {report.start:%Y-%m-%dT%H:%MZ} to {report.end:%Y-%m-%dT%H:%MZ}:"
    yield ""
    yield f"| objective | allowed | `{report.version}` | present version | requests needed | result |"
    yield "|---|---|---|---|---|---|"
    for each in report.criteria:
        new, present = describe_counts(each)
        allowed = "-" if each.allowed_share is None else f"{each.allowed_share:.2%}"
        yield f"| {describe_name(each)} | {allowed} | {new} | {present} | {each.needed_requests} | {each.verdict} |"
    yield ""
    yield (
        f"Exact binomial test against what is allowed, Fisher's exact test against the present version, one-sided, p"
        f" <= {report.significance:g}. With the requests needed the binomial test finds twice the allowed share, and at"
        f" least 2 percentage points more, with probability {report.power:g}."
    )


def describe_name(criterion: CriterionReport) -> str:
    """`ttft > 2 s` for a latency."""
    return criterion.name if criterion.limit_s is None else f"{criterion.name} > {criterion.limit_s:g} s"


def describe_counts(criterion: CriterionReport) -> tuple[str, str]:
    """Failures of requests of the new and of the present version."""
    return (
        f"{criterion.failures} of {criterion.requests}",
        f"{criterion.present_failures} of {criterion.present_requests}",
    )
