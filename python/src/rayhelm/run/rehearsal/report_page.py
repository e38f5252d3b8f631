"""Print the report of a rehearsal: tables in a terminal, or Markdown for a pull request."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from rayhelm.deploy.markdown import escape_markdown
from rayhelm.deploy.report_tables import ReportTable, format_tables, print_tables
from rayhelm.run.rehearsal.report import Report, RequestSummary

__all__ = ["format_markdown", "print_report"]

KEPT = "the rehearsal keeps running"


def print_report(report: Report, out: Console) -> None:
    color = "green" if report.ok else "red"
    out.print(f"[bold {color}]{escape(_describe_result(report))}[/bold {color}]", soft_wrap=True)
    out.print(_describe_cluster(report), soft_wrap=True, markup=False)
    print_tables(_build_tables(report), out)
    for title, lines in _build_lists(report):
        out.print(f"\n[bold]{title}[/bold]")
        for line in lines:
            out.print(f"  {line}", soft_wrap=True, markup=False)


def format_markdown(report: Report) -> str:
    """Return the report as Markdown, with a line break at the end."""
    cluster = "\n".join(map(escape_markdown, _describe_cluster(report).splitlines()))
    tables = format_tables(_build_tables(report), escape_markdown)
    parts = [f"### {escape_markdown(_describe_result(report))}", cluster, *tables]
    for title, lines_ in _build_lists(report):
        if title != KEPT:  # it has an API key
            parts.append(
                "\n".join([f"**{title.capitalize()}**", "", *(f"* {escape_markdown(line)}" for line in lines_)])
            )
    return "\n\n".join(parts) + "\n"


def _describe_result(report: Report) -> str:
    what = f"{report.fleet}, changed to {report.change}" if report.change else report.fleet
    if report.error:
        return f"{what}: the change is incomplete"
    failed = report.before.failed + (report.during.failed if report.during else 0)
    answered = report.before.answered + (report.during.answered if report.during else 0)
    return f"{what}: {failed or 'no'} of {failed + answered} requests failed"


def _describe_cluster(report: Report) -> str:
    context = f" (context {report.context})" if report.context else ""
    clusters = f"{report.peak_clusters} Ray cluster{'s' if report.peak_clusters > 1 else ''}"
    return (
        f"cluster {report.cluster}, rehearsed on {report.server}{context} with KubeRay {report.kuberay}\n"
        f"peak: {clusters}, {report.peak_pods} pods with requests of {report.peak_memory_gib:.1f} GiB"
    )


def _build_tables(report: Report) -> Iterator[ReportTable]:
    services = tuple(
        (each.name, ", ".join(each.models), _format_seconds(each.ready_seconds)) for each in report.services
    )
    yield ReportTable(("service", "models", "ready after"), 1, services)
    if report.changes:
        changes = tuple(
            (
                f"{each.chart} {each.name}",
                each.effect,
                _format_seconds(each.switched_seconds),
                _format_seconds(each.seconds),
            )
            for each in report.changes
        )
        yield ReportTable(("changed", "effect", "switched after", "complete after"), 2, changes)
    gpus = tuple(
        (each.pool, each.gpu, *map(str, (each.before, each.peak, each.after, each.capacity))) for each in report.gpus
    )
    yield ReportTable(("pool", "GPUs of the real fleet", "before", "peak", "after", "capacity"), 4, gpus)
    requests = [_build_row("before" if report.during else "constant load", report.before)]
    requests += [_build_row("during the change", report.during)] if report.during else []
    yield ReportTable(("requests", "answered", "failed", "p50", "p99", "slowest"), 5, tuple(requests))
    if report.failures:
        failures = tuple(
            (each.at, each.target, each.kind, each.error, f"{each.seconds:.1f} s") for each in report.failures
        )
        yield ReportTable(("failed at", "model", "kind", "error", "after"), 1, failures)


def _build_lists(report: Report) -> Iterator[tuple[str, Sequence[str]]]:
    meaning = [f"{each.chart} {each.name}: {sentence}" for each in report.changes for sentence in each.details]
    error = report.error.splitlines()
    lists = {
        "what the change means": meaning,
        "the change is incomplete": error,
        "warnings": report.warnings,
        "differences from the fleet": report.notes,
        KEPT: report.kept,
    }
    yield from ((title, lines) for title, lines in lists.items() if lines)


def _build_row(name: str, requests: RequestSummary) -> tuple[str, ...]:
    times = (requests.p50_seconds, requests.p99_seconds, requests.slowest_seconds)
    return (name, str(requests.answered), str(requests.failed), *("-" if t is None else f"{t:.2f} s" for t in times))


def _format_seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"
