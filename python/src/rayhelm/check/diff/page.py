"""Show the report of a comparison: tables in a terminal, or Markdown for a pull request."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from rayhelm.check.diff.report import DiffReport, KeptObject, ModelReport, ReleaseReport
from rayhelm.deploy.markdown import escape_markdown
from rayhelm.deploy.report_tables import ReportTable, format_tables, print_tables

__all__ = ["format_markdown", "print_diff"]

_WORDS = {
    "objects only": "other objects change",
    "bounds at next switch": "nothing now; bounds at the next new RayCluster",
    "replicas": "replicas change in place",
    "serve config": "Serve update in place",
    "in place": "RayCluster changed in place",
    "new cluster": "new RayCluster",
    "new cluster, waiting": "new RayCluster, which cannot take over",
}
"""Effects in the words of a table; others are their own."""


def print_diff(report: DiffReport, out: Console) -> None:
    color = "red" if report.dangers else "green"
    out.print(f"[bold {color}]{escape(_describe_result(report))}[/bold {color}]", soft_wrap=True)
    print_tables(_build_tables(report), out)
    for title, lines in _build_lists(report):
        out.print(f"\n[bold]{escape(title)}[/bold]")
        for line in lines:
            out.print(f"  {line}", soft_wrap=True, markup=False)


def format_markdown(report: DiffReport) -> str:
    """Return the report as Markdown, with a line break at the end."""
    parts = [f"### {_escape(_describe_result(report))}", *format_tables(_build_tables(report), _escape)]
    for title, texts in _build_lists(report):
        parts.append("\n".join([f"**{_escape(title)}**", "", *(f"* {_escape(text)}" for text in texts)]))
    return "\n\n".join(parts) + "\n"


def _escape(text: str) -> str:
    return escape_markdown(text).replace("*", "\\*")


def _describe_result(report: DiffReport) -> str:
    if not report.releases:
        return f"{report.old} -> {report.new}: nothing changes in {report.unchanged} releases"
    count = f"{len(report.releases)} of {len(report.releases) + report.unchanged} releases change"
    dangers = f"; {', '.join(report.dangers)}" if report.dangers else ""
    return f"{report.old} -> {report.new}: {count}{dangers}"


def _build_tables(report: DiffReport) -> Iterator[ReportTable]:
    if report.releases:
        rows = tuple(_build_row(each, report) for each in report.releases)
        yield ReportTable(("release", "what happens", "models", "time", "USD/h"), 2, rows)
    if report.gpus and report.releases:
        needs = tuple(
            (
                each.pool,
                each.resource,
                str(each.before),
                str(each.meanwhile),
                str(each.after),
                "?" if each.capacity is None else str(each.capacity),
            )
            for each in report.gpus
        )
        yield ReportTable(("pool", "GPU resource", "before", "meanwhile", "after", "pool has"), 4, needs)
    if report.waves:
        waves = tuple(
            (str(number), ", ".join(each.releases), f"missing: {', '.join(each.missing)}" if each.missing else "enough")
            for number, each in enumerate(report.waves, start=1)
        )
        yield ReportTable(("order of upgrades", "services", "GPUs"), 0, waves)
    if report.quotas and report.releases:
        limits = tuple(
            (_name(each.namespace, each.cluster, report), each.resource, str(each.meanwhile), str(each.limit))
            for each in report.quotas
        )
        yield ReportTable(("namespace", "GPU resource", "meanwhile", "quota"), 2, limits)


def _build_row(each: ReleaseReport, report: DiffReport) -> tuple[str, ...]:
    return (
        _name(f"{each.chart} {each.release}", each.cluster, report),
        _WORDS.get(each.effect, each.effect),
        ", ".join(f"{model.model} {_describe_model(model)}" for model in each.models),
        "" if each.seconds is None else f"{each.seconds:.0f} s",
        _describe_price(each.price_before, each.price_after),
    )


def _name(text: str, cluster: str, report: DiffReport) -> str:
    """Add the cluster if the report has several."""
    clusters = {each.cluster for each in report.releases} | {each.cluster for each in report.gpus}
    return f"{text} ({cluster})" if len(clusters) > 1 else text


def _describe_model(model: ModelReport) -> str:
    return "loaded again" if model.change == "loaded" else model.change


def _describe_price(before: float | None, after: float | None) -> str:
    first, last = ("?" if price is None else f"{price:.2f}" for price in (before, after))
    return "" if before is None and after is None else first if first == last else f"{first} -> {last}"


def _build_lists(report: DiffReport) -> Iterator[tuple[str, Sequence[str]]]:
    for each in report.releases:
        if lines := list(_describe_release(each)):
            yield f"{each.chart} {each.release}: {_WORDS.get(each.effect, each.effect)}", lines
    if prices := _describe_price(report.price_before, report.price_after):
        yield "Cost of the fleet", [f"{prices} USD per hour, of models with a known price"]
    if report.advice:
        yield "What to do instead", report.advice
    if report.notes:
        yield "Notes", report.notes


def _describe_release(each: ReleaseReport) -> Iterator[str]:
    yield from each.reasons
    if each.effect in ("new cluster", "new cluster, waiting", "held back", "in place") and each.changed:
        yield f"changed fields: {_join(each.changed)}"
    if each.at_next_switch:
        yield f"the running RayCluster does not receive: {_join(each.at_next_switch)}"
    for title, names in (
        ("added", each.added_objects),
        ("changed", each.changed_objects),
        ("pruned", each.pruned_objects),
    ):
        if names:
            yield f"objects {title}: {_join(names)}"
    if each.kept_objects:
        yield f"objects that stay: {_join([_describe_kept(kept) for kept in each.kept_objects])}"
    for kept in each.kept_objects:
        if kept.costs:
            yield f"{kept.object} goes on costing {kept.costs}. To remove it for good: {kept.removal}"
        elif kept.object.startswith("Namespace "):
            yield f"{kept.object} stays with all that is kept in it. To remove both for good: {kept.removal}"
    if each.requests:
        yield f"requests at risk: {each.requests}"
    if each.seconds is not None and each.time_basis and each.models:
        yield f"time: {each.seconds:.0f} s, from {each.time_basis}"
    elif each.time_basis:
        yield f"time: {each.time_basis}"
    yield from (f"instead: {text}" for text in each.advice)


def _describe_kept(kept: KeptObject) -> str:
    return kept.object if len(kept.kept_by) > 1 else f"{kept.object} ({kept.kept_by[0]} only)"


def _join(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
