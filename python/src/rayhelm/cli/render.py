"""`rayhelm render`: the files of a fleet, written or compared."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rayhelm.cli.fleet_commands import FleetArgument, fleet_file
from rayhelm.cli.output import Format, FormatOption, warn

if TYPE_CHECKING:
    from rayhelm.errors import Problem
    from rayhelm.render.folder import Difference

__all__ = ["render_command"]


def render_command(
    fleet: FleetArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write into; the fleet file's own when left out.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 where a file is stale.")] = False,
    manifests: Annotated[bool, typer.Option("--manifests", help="Also what Helm makes of it.")] = False,
    format: FormatOption = Format.text,
) -> None:
    """Write the plan and the Helm values of a fleet (and with `--manifests` the Kubernetes objects)."""
    from rayhelm.errors import FleetError
    from rayhelm.render.files import files_of, manifests_of, render_fleet
    from rayhelm.render.folder import compare, write

    path = fleet_file(fleet)
    folder = output or path.parent
    rendered = render_fleet(path)
    files = files_of(rendered) | (manifests_of(rendered) if manifests else {})
    difference = compare(folder, files, rendered)
    fix = f"rayhelm render {path}" + (f" -o {output}" if output else "") + (" --manifests" if manifests else "")
    problems = _stale(difference, folder, fix) if check else []
    if not check:
        write(folder, files, difference)
    warnings = list(rendered.plan.all_warnings)
    if format is Format.json:
        print(json.dumps(_as_json(difference, folder, warnings, problems, check=check), indent=2))
        raise typer.Exit(1 if problems else 0)
    if problems:
        raise FleetError(problems)
    for name in difference.leftover:
        print(f"removed  {folder / name}")
    for name in files:
        print(f"{'written' if name in difference.stale else 'current'}  {folder / name}")
    for text in warnings:
        warn(text)


def _stale(difference: "Difference", folder: Path, fix: str) -> list["Problem"]:
    from rayhelm.errors import Problem

    return [
        *(Problem("is stale", file=str(folder / name), fix=fix) for name in difference.stale),
        *(
            Problem("is stale: the fleet has no such release any more", file=str(folder / name), fix=fix)
            for name in difference.leftover
        ),
    ]


def _as_json(
    difference: "Difference", folder: Path, warnings: list[str], problems: list["Problem"], *, check: bool
) -> dict[str, object]:
    stale, leftover = ([str(folder / name) for name in names] for names in (difference.stale, difference.leftover))
    return {
        "written": [] if check else stale,
        "removed": [] if check else leftover,
        "current": [str(folder / name) for name in difference.current],
        "stale": stale + leftover if check else [],
        "warnings": warnings,
        "problems": [problem.as_dict() for problem in problems],
    }
