"""`rayhelm rehearse`: a fleet, and an edit of it, tried on a cluster without cards."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rayhelm.cli.fleet_commands import fleet_file
from rayhelm.cli.output import PageFormat, PageFormatOption, console, shown

if TYPE_CHECKING:
    from rayhelm.rehearsal.cluster_session import ClusterSession
    from rayhelm.rehearsal.report import Report
    from rayhelm.render.files import Rendered

__all__ = ["rehearse_command"]

IMAGE = "rayhelm.local/ray:cpu"


def rehearse_command(
    fleet: Annotated[
        Path | None,
        typer.Argument(metavar="FLEET", help="The fleet file, or a folder with `fleet.yaml`."),
    ] = None,
    change: Annotated[
        Path | None, typer.Option("--change", help="The fleet file as it will be: the change is made under load.")
    ] = None,
    cluster: Annotated[str, typer.Option("--cluster", help="Cluster of a fleet that has several.")] = "",
    service: Annotated[
        list[str] | None, typer.Option("--service", help="Only this service of the fleet; may be repeated.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", help="The cluster to rehearse on; what kubectl takes when left out.")
    ] = None,
    context: Annotated[str, typer.Option("--context", help="Context in it; the current one when left out.")] = "",
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
        float, typer.Option("--seconds", min=1, max=3600, help="Seconds of load, before the change where there is one.")
    ] = 30,
    with_gpus: Annotated[bool, typer.Option("--with-gpus", help="The cluster may have GPUs; none is used.")] = False,
    allow_existing: Annotated[
        bool, typer.Option("--allow-existing", help="Others may have RayServices there; they are left alone.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave it running, and say how to call and to end it.")] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Take away what an earlier rehearsal left or kept, and do nothing else.")
    ] = False,
    format: PageFormatOption = PageFormat.text,
) -> None:
    """Rehearse a fleet, and a change of it, on a cluster without GPUs: real releases, tiny models, steady load.

    Ends with 0 where no request was lost, with 1 where some were or the change did not come to its end. All that it
    made is removed again. The cluster needs KubeRay and its operator.
    """
    import signal

    from rayhelm.errors import UsageError
    from rayhelm.rehearsal.rehearse import clean as take_away
    from rayhelm.rehearsal.rehearse import rehearse
    from rayhelm.rehearsal.scenario import RehearsalOptions, refuse_identical, select_cluster
    from rayhelm.render.files import render_fleet

    # Whoever ends it politely has it cleaned up, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if clean:
        if fleet or change:
            raise UsageError("--clean takes no fleet: the cluster knows what is there")
        with shown(format) as say:
            _print_cleaned(take_away(_stage(kubeconfig, context, say)), format)
        return
    if fleet is None:
        raise UsageError("which fleet? rayhelm rehearse FLEET")
    old = render_fleet(fleet_file(fleet))
    new = render_fleet(fleet_file(change)) if change else None
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
    with shown(format) as say:
        report = rehearse(_stage(kubeconfig, context, say), old, new, options)
    _print(report, format)
    if not report.ok:
        raise typer.Exit(1)


def _stage(kubeconfig: Path | None, context: str, say: Callable[[str], None]) -> "ClusterSession":
    from rayhelm.kube.kubectl import Kubectl, find_kubectl
    from rayhelm.rehearsal.cluster_session import ClusterSession

    file = kubeconfig.absolute() if kubeconfig else None
    return ClusterSession(Kubectl(find_kubectl(), file, context=context), file, context, say)


def _services(old: "Rendered", new: "Rendered | None", wanted: list[str]) -> tuple[str, ...]:
    from rayhelm.errors import FleetError, Problem
    from rayhelm.spec.nearest import nearest

    known = [*old.values, *(new.values if new else ())]
    for name in wanted:
        if name not in known:
            close = nearest(name, known) or known
            raise FleetError(Problem(f"no service `{name}` in this fleet", fix=f"--service {close[0]}"))
    return tuple(wanted)


def _print(report: "Report", format: PageFormat) -> None:
    from rayhelm.rehearsal.report_page import format_markdown, print_report

    match format:
        case PageFormat.json:
            print(report.model_dump_json(indent=2))
        case PageFormat.markdown:
            print(format_markdown(report), end="")
        case PageFormat.text:
            print_report(report, console())


def _print_cleaned(ended: int | None, format: PageFormat) -> None:
    import json

    if format is PageFormat.json:
        print(json.dumps({"there": ended is not None, "uninstalled": ended or 0}))
    elif ended is None:
        print("no rehearsal is on this cluster")
    else:
        print(f"taken away: {ended} releases, and the namespaces that were made for them")
