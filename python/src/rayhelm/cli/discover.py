"""`rayhelm discover`: the pools of a live cluster, as a fleet file."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rayhelm.cli.cluster_options import ContextOption, KubeconfigOption
from rayhelm.cli.files import check_new, write_file
from rayhelm.cli.new_fleet.checks import check_name
from rayhelm.cli.output import Format, FormatOption, show_progress, warn
from rayhelm.errors import UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.load import load_fleet
from rayhelm.fleet.own_gpus import extend_catalog
from rayhelm.live.cluster.reader import connect
from rayhelm.live.discovery.cluster import Discovery, discover
from rayhelm.live.discovery.fleet_text import format_fleet
from rayhelm.live.discovery.machine import group_by_reason

__all__ = ["discover_command"]


def discover_command(
    context: ContextOption = "",
    kubeconfig: KubeconfigOption = None,
    fleet: Annotated[str, typer.Option(help="Name of the fleet.")] = "discovered",
    cluster: Annotated[str, typer.Option(help="Name of this cluster in the fleet file.")] = "main",
    gpus: Annotated[
        Path | None,
        typer.Option(
            "--gpus",
            metavar="FLEET",
            help="Fleet file whose `gpus` are known too, by their `productLabel`; they are written with the pools.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a new file; default: print.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Write the pools of a fleet file from the nodes of a live cluster: kinds and counts of GPUs, sharing, spot, RDMA,
    taints, CPU and memory.

    Reads nodes, and the versions and addresses of the cluster; changes nothing. Ends with 1 if no node has a GPU that
    the catalog knows, and with 3 if no cluster answers.
    """
    _check_name("--fleet", fleet)
    _check_name("--cluster", cluster)
    if output:
        check_new(output, "rayhelm discover -o FILE")
    given = load_fleet(find_fleet_file(gpus)) if gpus else None
    facts = extend_catalog(given.fleet.gpus if given else {})
    reader = connect(context, kubeconfig)
    with show_progress(format) as report:
        reader.on_part = report
        found = discover(reader, facts, cluster)
    for names, node in group_by_reason(found.unusable):
        warn(f"{names} {'are' if names.startswith('nodes ') else 'is'} left out: {node.reason}\nfix:\n  {node.fix}")
    if format is Format.json:
        text = _format_json(found)
    else:
        described = given.document.data.get("gpus") or {} if given else {}
        text = format_fleet(fleet, cluster, found.settings, found.notes, found.pools, found.unusable, described)
    if output:
        write_file(output, text, "rayhelm discover -o FILE")
        print(output)
    else:
        print(text, end="")


def _check_name(flag: str, name: str) -> None:
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def _format_json(found: Discovery) -> str:
    record = {
        "cluster": found.settings,
        "notes": list(found.notes),
        "nodes": found.nodes,
        "pools": {
            pool.name: {
                "fields": dict(pool.fields),
                "nodes": [machine.name for machine in pool.machines],
                "notes": dict(pool.notes),
            }
            for pool in found.pools
        },
        "unusable": [{"node": node.name, "reason": node.reason, "fix": node.fix.as_dict()} for node in found.unusable],
    }
    return json.dumps(record, indent=2) + "\n"
