"""`rayhelm probe`: measure the pools of a live cluster."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from rayhelm.cli.cluster_options import ClusterOption, ContextOption, KubeconfigOption
from rayhelm.cli.files import check_writable
from rayhelm.cli.output import Format, FormatOption, console, show_progress, warn
from rayhelm.deploy.compose.platform import NAMESPACE as SYSTEM
from rayhelm.deploy.images.mirror import check_mirror
from rayhelm.errors import FleetError, MissingError, UsageError
from rayhelm.fleet.document import read_document
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.load import parse_fleet
from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.live.cluster.reader import AbsentError, ForbiddenError
from rayhelm.live.cluster.writer import connect_writer
from rayhelm.live.probe.objects import build_setup, format_objects
from rayhelm.live.probe.store import read_file
from rayhelm.live.probe.targets import (
    choose_cluster,
    find_targets,
    list_images,
    list_jobs,
    measure_pools,
    read_registry,
)

__all__ = ["probe_command"]


def probe_command(
    fleet: Annotated[
        Path | None, typer.Argument(metavar="FLEET", help="The fleet file, or a folder with `fleet.yaml`.")
    ] = None,
    pool: Annotated[
        list[str] | None, typer.Option(metavar="POOL", help="Measure only this pool. Can be given several times.")
    ] = None,
    cpu: Annotated[
        bool,
        typer.Option("--cpu", help="Measure CPUs and the network between them; requests no GPU. Not for RDMA."),
    ] = False,
    image: Annotated[
        str, typer.Option(help="Image with python3 and torch; default: the one of the pool's workers.")
    ] = "",
    registry: Annotated[
        str,
        typer.Option(
            metavar="REGISTRY",
            help="Registry with copies of the images, as `rayhelm images --mirror` names them; default:"
            " `global.imageRegistry` in `values` of the cluster.",
        ),
    ] = "",
    assigned_user: Annotated[
        bool, typer.Option("--assigned-user", help="Let the cluster assign the user of the pods, as OpenShift does.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Also write the measurements to this file."),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="MINUTES", min=0.1, help="Time for each Job, with its start.")] = 10,
    namespace: Annotated[str, typer.Option(help="Namespace of Jobs and results.")] = "rayhelm-probe",
    priority_class: Annotated[
        str, typer.Option(metavar="NAME", help="PriorityClass of pods with GPUs; chart platform has the default.")
    ] = "rayhelm-batch",
    setup: Annotated[
        bool,
        typer.Option("--setup", help="Print the objects that a probe needs once: namespace, rights, policies."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the Jobs that would run, and end.")] = False,
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = None,
    cluster: ClusterOption = "",
    format: FormatOption = Format.text,
) -> None:
    """Measure the pools of a live cluster: memory bandwidth, matrix rate, links between GPUs, and the network between
    nodes.

    Runs one Job for each node and for each pair of neighboring nodes, and writes the results to a ConfigMap. A plan
    uses them in place of the network of the pool: `measurements: FILE` in the fleet file. Ends with 1 if nothing could
    be measured, and with 3 if no cluster answers or a right is missing.
    """
    if namespace == SYSTEM:
        raise UsageError(
            f"namespace {namespace} has the account of the doctor, and who may create Jobs there can use it;"
            f" use a namespace of its own: --namespace rayhelm-probe"
        )
    if fleet is None:
        raise UsageError("the fleet file is missing: rayhelm probe FLEET")
    # Without its measurements: the first probe writes them, and a later one replaces them.
    loaded = parse_fleet(read_document(find_fleet_file(fleet)))
    region = choose_cluster(loaded.fleet, cluster)
    registry = check_mirror(registry, "--registry") if registry else read_registry(loaded.fleet, region)
    if setup:
        images = list_images(loaded.fleet, region, image, registry)
        print(format_objects(build_setup(namespace, images, priority_class)))
        return
    if output:
        check_writable(output, "rayhelm probe FLEET -o FILE")
        read_file(output)  # a file of another kind is not overwritten
    try:
        writer = connect_writer(context, kubeconfig)
        with loaded.joined():
            targets = find_targets(
                writer,
                loaded.fleet,
                region,
                pool or (),
                image,
                namespace,
                on_cpu=cpu,
                registry=registry,
                assigned_user=assigned_user,
                priority_class=priority_class,
                warn=lambda problem: warn(str(loaded.locate(problem))),
            )
        if dry_run:
            print(format_objects(list_jobs(targets, timeout * 60)))
            return
        with show_progress(format) as show:
            measured = measure_pools(writer, targets, namespace, timeout * 60, output, show, warn)
    except ForbiddenError as error:
        how = f"rayhelm probe {fleet} --setup --namespace {namespace} | kubectl apply -f -    # as an administrator"
        raise MissingError(f"the account may not do this: {error}", how) from None
    except AbsentError as error:
        how = f"rayhelm probe {fleet} --setup --namespace {namespace} | kubectl apply -f -"
        raise MissingError(f"namespace {namespace} lacks the objects of a probe: {error}", how) from None
    if format is Format.json:
        print(measured.model_dump_json(indent=2))
    else:
        _print_tables(measured, output)
    if not any(each.nodes or each.pairs for each in measured.pools.values()):
        raise typer.Exit(FleetError.exit_code)


def _print_tables(measured: FleetMeasurements, output: Path | None) -> None:
    out = console()
    for name, pool in measured.pools.items():
        nodes = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"pool {name} · {pool.gpu}", title_justify="left")
        for column in ("node", "device", "memory GB/s", "matrices TFLOP/s", "GPU to GPU GB/s", "spread", "not used"):
            nodes.add_column(column, overflow="fold")
        for node in pool.nodes:
            link = f"{node.link_gb_per_s:.3g}" if node.link_gb_per_s else "-"
            figures = (f"{node.memory_gb_per_s:.3g}", f"{node.matrix_tflops:.3g}", link, f"{node.spread:.0%}")
            nodes.add_row(node.node, node.device, *figures, node.why_not)
        pairs = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in ("nodes", "through", "GB/s", "latency us", "spread", "not used"):
            pairs.add_column(column, overflow="fold")
        for pair in pool.pairs:
            figures = (f"{pair.gb_per_s:.3g}", f"{pair.latency_us:.3g}", f"{pair.spread:.0%}", pair.why_not)
            pairs.add_row(" - ".join(pair.nodes), pair.backend, *figures)
        for table, rows in ((nodes, pool.nodes), (pairs, pool.pairs)):
            if rows:
                out.print(table)
        for key, reason in pool.skipped.items():
            warn(f"pool {name}, {key.replace('+', ' - ')}: not measured: {reason}")
    if output:
        print(f"{output} is written; the plan uses it when the fleet file has `measurements: {output.name}`")
