"""`rayhelm diff`: what an edit will do to a running cluster."""

import enum
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rayhelm.check.diff.compare import compare_sides
from rayhelm.check.diff.page import format_markdown, print_diff
from rayhelm.check.diff.read_fleet import find_merge_base, read_fleet, read_revision
from rayhelm.check.diff.read_live import read_live
from rayhelm.check.diff.read_side import read_side
from rayhelm.check.diff.report import DiffReport
from rayhelm.check.diff.side import Side
from rayhelm.cli.output import PageFormat, PageFormatOption, print_page
from rayhelm.errors import UsageError
from rayhelm.fleet.find_file import find_fleet_file
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.live.cluster.reader import connect

__all__ = ["FailOn", "diff_command"]


class FailOn(enum.StrEnum):
    """What `--fail-on` refuses."""

    new_cluster = "new-cluster"
    held_back = "held-back"
    no_room = "no-room"
    requests_at_risk = "requests-at-risk"
    absorbed = "absorbed"
    removed = "removed"
    any = "any"


def diff_command(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help="A fleet file, a folder that `rayhelm render` wrote, or revisions of git: `A..B`, `A...B` or `A` (to"
            " the file as it is now). With --live the new state.",
        ),
    ],
    new: Annotated[
        Path | None,
        typer.Argument(metavar="NEW", help="A fleet file or a rendered folder; after revisions, the fleet file."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Compare with the cluster of your kubeconfig; reads, and writes nothing.")
    ] = False,
    context: Annotated[
        str, typer.Option("--context", help="Context of the kubeconfig; implies --live. Default: the current one.")
    ] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", help="Kubeconfig; implies --live. Default: that of kubectl.")
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", help="With --live: cluster of the fleet, if it has several.")
    ] = "",
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option("--fail-on", help="End with 1 if the change does this to a release. May be repeated."),
    ] = None,
    format: PageFormatOption = PageFormat.text,
) -> None:
    """Show what replacing OLD by NEW does to running services: new Ray clusters, GPUs, loaded models, requests, cost.

    Nothing is written, and no cluster is changed. Exit code 1: KubeRay, the API server or a chart refuses NEW, or
    `--fail-on` names a danger of the change.
    """
    before, after = _read_sides(old, new, cluster, context, kubeconfig, live=live or bool(context or kubeconfig))
    report = compare_sides(before, after)
    _print(report, format)
    refused = {"refused", *(report.dangers if FailOn.any in (fail_on or []) else fail_on or ())}
    if refused.intersection(report.dangers):
        raise typer.Exit(1)


def _read_sides(
    old: str, new: Path | None, cluster: str, context: str, kubeconfig: Path | None, *, live: bool
) -> tuple[Side, Side]:
    if live:
        if new:
            raise UsageError("with --live give one state: rayhelm diff FLEET --live")
        return _read_live(read_side(Path(old)), cluster, context, kubeconfig)
    if cluster:
        raise UsageError("--cluster is for a comparison with a cluster: rayhelm diff FLEET --live --cluster NAME")
    if ".." in old and not Path(old).exists():
        return _read_range(old, new)
    if new is None:
        raise UsageError("NEW is missing: rayhelm diff OLD NEW, rayhelm diff A..B FLEET, or rayhelm diff FLEET --live")
    if not Path(old).exists() and not old.endswith((".yaml", ".yml")):
        return _read_range(old, new)
    return read_side(Path(old)), read_side(new)


def _read_range(revisions: str, path: Path | None) -> tuple[Side, Side]:
    if path is None:
        raise UsageError(f"the fleet file is missing: rayhelm diff {revisions} fleet.yaml")
    file = find_fleet_file(path)
    first, dots, last = revisions.partition("..")
    if not dots:
        return read_revision(first, file), read_fleet(file)
    first, last, is_symmetric = first or "HEAD", last.removeprefix(".") or "HEAD", last.startswith(".")
    # As in git: three dots compare with the common ancestor.
    base = find_merge_base(first, last, file) if is_symmetric else first
    return read_revision(base, file), read_revision(last, file)


def _read_live(side: Side, cluster: str, context: str, kubeconfig: Path | None) -> tuple[Side, Side]:
    names = list(side.kuberay)
    if len(names) > 1 and not cluster:
        raise UsageError(f"the fleet has several clusters: --cluster {' or '.join(names)}")
    if cluster and cluster not in names:
        raise UsageError(f"the fleet has no cluster `{cluster}`; {did_you_mean(cluster, names)}".rstrip("; "))
    key = cluster or names[0]
    mine = {name: release for name, release in side.releases.items() if name[0] == key}
    found = read_live(connect(context, kubeconfig), side, key)
    return found, replace(side, releases=mine, kuberay={key: side.kuberay[key]})


def _print(report: DiffReport, format: PageFormat) -> None:
    print_page(report, format, format_markdown, print_diff)
