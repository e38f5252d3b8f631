"""`rayhelm rehearse`: try a fleet, and a change of it, on a cluster without GPUs."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rayhelm.cli.output import PageFormat, PageFormatOption, print_page, show_progress
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.errors import UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.live.cluster.kubectl import Kubectl, find_kubectl
from rayhelm.run.rehearsal.cluster_session import ClusterSession
from rayhelm.run.rehearsal.rehearse import clean as remove_all
from rayhelm.run.rehearsal.rehearse import rehearse
from rayhelm.run.rehearsal.report import Report
from rayhelm.run.rehearsal.report_page import format_markdown, print_report
from rayhelm.run.rehearsal.scenario import RehearsalOptions, refuse_identical, select_cluster

__all__ = ["rehearse_command"]

IMAGE = "rayhelm.local/ray:cpu"


def rehearse_command(
    fleet: Annotated[
        Path | None,
        typer.Argument(metavar="FLEET", help="The fleet file, or a folder with `fleet.yaml`."),
    ] = None,
    change: Annotated[
        Path | None, typer.Option("--change", help="The changed fleet file; the change is made under load.")
    ] = None,
    cluster: Annotated[str, typer.Option("--cluster", help="Cluster of the fleet, if it has several.")] = "",
    service: Annotated[
        list[str] | None, typer.Option("--service", help="Rehearse only this service of the fleet. May be repeated.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", help="Kubeconfig of the cluster to rehearse on. Default: that of kubectl."),
    ] = None,
    context: Annotated[
        str, typer.Option("--context", help="Context of the kubeconfig. Default: the current one.")
    ] = "",
    image: Annotated[
        str, typer.Option("--image", help="Image with Ray, vLLM for CPUs, rayhelm and the tiny models.")
    ] = IMAGE,
    gateway_image: Annotated[
        str,
        typer.Option(
            "--gateway-image",
            help="Image of HAProxy; default: rayhelm.local/ray:haproxy if all nodes have it, else the chart's.",
        ),
    ] = "",
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, max=3600, help="Seconds of load before the change.")
    ] = 30,
    with_gpus: Annotated[
        bool, typer.Option("--with-gpus", help="Allow a cluster with GPUs. The rehearsal uses none.")
    ] = False,
    allow_existing: Annotated[
        bool,
        typer.Option(
            "--allow-existing", help="Allow a cluster with other RayServices. The rehearsal leaves them alone."
        ),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep it running, and print how to send requests and how to remove it.")
    ] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove what an earlier rehearsal left or kept, and do nothing else.")
    ] = False,
    format: PageFormatOption = PageFormat.text,
) -> None:
    """Rehearse a fleet, and a change of it, on a cluster without GPUs: its releases, tiny models, constant load.

    Exit code 0: no request failed. Exit code 1: requests failed, or the change is incomplete. The rehearsal removes
    everything that it creates. The cluster needs the KubeRay operator.
    """
    # SIGTERM removes everything, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if clean:
        if fleet or change:
            raise UsageError("--clean takes no fleet: the record on the cluster names what to remove")
        with show_progress(format) as report_progress:
            _print_cleaned(remove_all(_open_session(kubeconfig, context, report_progress)), format)
        return
    if fleet is None:
        raise UsageError("FLEET is missing: rayhelm rehearse FLEET")
    old = render_fleet(find_fleet_file(fleet))
    new = render_fleet(find_fleet_file(change)) if change else None
    options = RehearsalOptions(
        cluster=select_cluster(old, cluster),
        services=_services(old, new, service or []),
        image=image,
        gateway_image=gateway_image,
        with_gpus=with_gpus,
        allow_existing=allow_existing,
        keep=keep,
        seconds=seconds,
    )
    if new:
        refuse_identical(old, new, options)
    with show_progress(format) as report_progress:
        report = rehearse(_open_session(kubeconfig, context, report_progress), old, new, options)
    _print(report, format)
    if not report.ok:
        raise typer.Exit(1)


def _open_session(kubeconfig: Path | None, context: str, report_progress: Callable[[str], None]) -> ClusterSession:
    file = kubeconfig.absolute() if kubeconfig else None
    return ClusterSession(Kubectl(find_kubectl(), file, context=context), file, context, report_progress)


def _services(old: Rendered, new: Rendered | None, wanted: list[str]) -> tuple[str, ...]:
    known = [*old.values, *(new.values if new else ())]
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"`--service`: the fleet has no service `{name}`; {did_you_mean(name, known)}".rstrip("; ")
            )
    return tuple(wanted)


def _print(report: Report, format: PageFormat) -> None:
    print_page(report, format, format_markdown, print_report)


def _print_cleaned(removed: int | None, format: PageFormat) -> None:
    if format is PageFormat.json:
        print(json.dumps({"found": removed is not None, "uninstalled": removed or 0}))
    elif removed is None:
        print("there is no rehearsal on this cluster")
    else:
        print(f"removed {removed} releases and the namespaces of the rehearsal")
