"""`rayhelm doctor`: check a live installation."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from rayhelm.cli.cluster_options import ClusterOption, ContextOption, KubeconfigOption
from rayhelm.cli.output import Format, FormatOption, HeaderFileOption, console, show_progress
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.errors import FleetError, UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.live.cluster.reader import connect
from rayhelm.live.cost.client import open_client, read_headers
from rayhelm.live.doctor.access import build_manifests
from rayhelm.live.doctor.chart_values import build_values
from rayhelm.live.doctor.check import load_checks
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import DoctorReport
from rayhelm.live.doctor.metrics import serve
from rayhelm.live.doctor.run import run_checks

__all__ = ["doctor_command"]


def doctor_command(
    fleet: Annotated[
        Path | None,
        typer.Argument(
            metavar="FLEET",
            help="The fleet file: what the cluster should have. Without it, only the cluster itself is checked.",
        ),
    ] = None,
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = None,
    cluster: ClusterOption = "",
    prometheus: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Prometheus, without /api/v1. With it, targets, rules and queries are checked too."
        ),
    ] = "",
    header_file: HeaderFileOption = None,
    check: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Run only this check. Can be given several times.")
    ] = None,
    rbac: Annotated[
        bool, typer.Option("--rbac", help="Print the rights that the checks need, as YAML, and end.")
    ] = False,
    values: Annotated[
        str,
        typer.Option(
            metavar="IMAGE",
            help="Print values of chart platform that run the checks in the cluster with this image, and end.",
        ),
    ] = "",
    serve: Annotated[
        int,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="Run the checks again and again, and serve the findings as metrics."
        ),
    ] = 0,
    every: Annotated[float, typer.Option(metavar="MINUTES", min=0.1, help="With --serve: time between two runs.")] = 10,
    format: FormatOption = Format.text,
) -> None:
    """Check a live installation: versions, kinds, conditions, quotas, autoscalers, keys, drift, nodes and metrics.

    Reads only. Each finding has its evidence, its cause and a fix. Ends with 1 if there is a finding, and with 3 if no
    cluster answers.
    """
    for name in check or []:
        if name not in load_checks():
            raise UsageError(f"there is no check `{name}`; the checks are: {', '.join(load_checks())}")
    if serve:
        _serve(serve, every, fleet, cluster, context, kubeconfig, prometheus, header_file, check)
        return
    rendered = render_fleet(find_fleet_file(fleet)) if fleet else None
    region = _choose_cluster(rendered, cluster)
    if rbac:
        print(build_manifests(rendered, region))
        return
    if values:
        if not rendered:
            raise UsageError("`--values` needs the fleet file: rayhelm doctor FLEET --values IMAGE")
        print(build_values(rendered, region, values))
        return
    with show_progress(format) as show:
        report = _run(rendered, region, context, kubeconfig, prometheus, header_file, check, show)
    if format is Format.json:
        print(report.model_dump_json(indent=2))
    else:
        _print_report(report)
    if report.findings:
        raise typer.Exit(FleetError.exit_code)


def _serve(
    port: int,
    every_minutes: float,
    fleet: Path | None,
    cluster: str,
    context: str,
    kubeconfig: Path | None,
    prometheus: str,
    header_file: Path | None,
    wanted: list[str] | None,
) -> None:
    def load() -> tuple[Rendered | None, str]:
        rendered = render_fleet(find_fleet_file(fleet)) if fleet else None
        return rendered, _choose_cluster(rendered, cluster)

    def examine() -> DoctorReport:
        # The fleet file is read again: in a pod it is a ConfigMap, which changes.
        rendered, region = load()
        return _run(rendered, region, context, kubeconfig, prometheus, header_file, wanted, lambda text: None)

    load()  # a wrong option or fleet file ends the command here, and not every run
    serve(examine, port, every_minutes * 60, lambda text: print(text, flush=True))


def _choose_cluster(rendered: Rendered | None, wanted: str) -> str:
    names = list(rendered.plan.declared.clusters) if rendered else []
    if wanted and not rendered:
        raise UsageError("`--cluster` names a cluster of a fleet file: rayhelm doctor FLEET --cluster NAME")
    if wanted and wanted not in names:
        raise UsageError(f"the fleet has no cluster `{wanted}`; it has: {', '.join(names)}")
    if len(names) > 1 and not wanted:
        raise UsageError(f"the fleet has several clusters; name this one: --cluster {' | '.join(names)}")
    return wanted or (names[0] if names else "")


def _run(
    rendered: Rendered | None,
    region: str,
    context: str,
    kubeconfig: Path | None,
    prometheus: str,
    header_file: Path | None,
    wanted: list[str] | None,
    show: Callable[[str], None],
) -> DoctorReport:
    with ExitStack() as stack:
        client = stack.enter_context(open_client(prometheus, read_headers(header_file))) if prometheus else None
        show("connecting to the cluster")
        facts = Facts(connect(context, kubeconfig), rendered, region, client)
        return run_checks(facts, show, wanted)


def _print_report(report: DoctorReport) -> None:
    out = console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"cluster {report.cluster}", title_justify="left")
    for column in ("check", "", "result"):
        table.add_column(column, overflow="fold")
    colors = {"ok": "green", "findings": "red", "skipped": "dim", "not checked": "yellow"}
    for result in report.checks:
        count = sum(finding.check == result.id for finding in report.findings)
        word = f"{count} finding{'s' if count > 1 else ''}" if result.state == "findings" else result.state.value
        why = f": {result.why}" if result.state == "skipped" else ""
        color = colors[result.state.value]
        table.add_row(result.id, escape(result.title), f"[{color}]{word}[/{color}]{escape(why)}")
    out.print(table)
    for finding in report.findings:
        color = "red" if finding.severity == "critical" else "yellow"
        out.print(f"[{color}]{finding.severity}[/{color}]  [bold]{escape(finding.object)}[/bold]  ({finding.check})")
        out.print(f"  evidence: {escape(finding.evidence)}", soft_wrap=True)
        out.print(f"  cause: {escape(finding.cause)}", soft_wrap=True)
        out.print("  fix:", soft_wrap=True)
        for line in finding.fix.splitlines():
            out.print(f"    {escape(line)}", soft_wrap=True)
        out.print()
    total = len(report.findings)
    out.print("no findings" if not total else f"{total} finding{'s' if total > 1 else ''}")
