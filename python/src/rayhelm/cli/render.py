"""`rayhelm render`: write the files of a fleet, or compare them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rayhelm.check.lint.admission import check_admission
from rayhelm.cli.output import FleetArgument, Format, FormatOption, warn
from rayhelm.deploy.compose.prometheus_rules import list_models_without_price
from rayhelm.deploy.render.files import build_files, build_manifests, render_fleet
from rayhelm.deploy.render.folder import EDITED, Difference, compare, write
from rayhelm.deploy.render.manifest import MANIFEST
from rayhelm.deploy.render.repository import find_repository_problems
from rayhelm.deploy.render.warnings import list_warnings
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.find_file import find_fleet_file

__all__ = ["render_command"]


def render_command(
    fleet: FleetArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write into; default: the folder of the fleet file.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; end with 1 if a file is stale, missing or left over.")
    ] = False,
    manifests: Annotated[bool, typer.Option("--manifests", help="Also write the objects that Helm renders.")] = False,
    format: FormatOption = Format.text,
) -> None:
    """Write the plan and the Helm values of a fleet, and with `--manifests` the Kubernetes objects.

    `.rayhelm-files.json` in the folder lists the files that were written. A later render removes those that the fleet
    no longer has. It removes no other file and no file that was edited since. Before it overwrites such a file, it
    keeps a copy.
    """
    path = find_fleet_file(fleet)
    folder = output or path.parent
    rendered = render_fleet(path)
    misplaced = [rendered.plan.source.locate(each) for each in find_repository_problems(rendered.plan, folder)]
    if misplaced and not output:
        raise FleetError(misplaced)
    files = build_files(rendered)
    if manifests:
        objects = build_manifests(rendered)
        check_admission(rendered, objects)
        files |= objects
    difference = compare(folder, files, rendered)
    command = f"rayhelm render {path}" + (f" -o {output}" if output else "") + (" --manifests" if manifests else "")
    problems = list(_stale(difference, folder, command)) if check else []
    if not check:
        write(folder, files, difference)
    left_open = list_warnings(rendered.plan)
    unpriced = list_models_without_price(rendered.plan)
    found = (*rendered.plan.all_warnings, *unpriced, *map(str, misplaced))
    warnings = [*found, *(() if check else (*left_open, *_warnings(difference, folder)))]
    if format is Format.json:
        print(json.dumps(_as_json(difference, folder, warnings, problems, check=check), indent=2))
        raise typer.Exit(1 if problems else 0)
    if problems:
        raise FleetError(problems)
    for name in difference.removed:
        print(f"removed  {folder / name}")
    for name in difference.kept:
        print(f"kept     {folder / name}")
    for name in files:
        print(f"{'written' if name in difference.stale else 'current'}  {folder / name}")
    for text in warnings:
        warn(text)


def _stale(difference: Difference, folder: Path, command: str) -> Iterator[Problem]:
    render = Fix(command=command)
    for name in difference.stale:
        yield Problem("is stale", file=str(folder / name), fix=render)
    for name in difference.removed:
        yield Problem("is stale: the fleet no longer has it", file=str(folder / name), fix=render)
    for name in difference.kept:
        message = "is stale: the fleet no longer has it, and render keeps it because it may have been edited"
        yield Problem(message, file=str(folder / name), fix=Fix(command=f"rm {folder / name}"))
    if difference.manifest_is_stale and not (difference.stale or difference.removed):
        yield Problem("is stale", file=str(folder / MANIFEST), fix=render)


def _warnings(difference: Difference, folder: Path) -> Iterator[str]:
    for name in difference.edited:
        yield f"{folder / name}: was edited, and is overwritten; a copy of it is in {folder / EDITED}"
    for name in difference.kept:
        yield f"{folder / name}: the fleet no longer has it; kept, because it may have been edited. Remove it yourself"
    if difference.outdated:
        yield f"{folder / 'manifests'}: not updated, because `--manifests` was not given"


def _as_json(
    difference: Difference, folder: Path, warnings: list[str], problems: list[Problem], *, check: bool
) -> dict[str, object]:
    def paths(names: Sequence[str]) -> list[str]:
        return [str(folder / name) for name in names]

    return {
        "written": [] if check else paths(difference.stale),
        "removed": [] if check else paths(difference.removed),
        "kept": paths(difference.kept),
        "current": paths(difference.current),
        "stale": paths((*difference.stale, *difference.removed, *difference.kept)) if check else [],
        "warnings": warnings,
        "problems": [problem.as_dict() for problem in problems],
    }
