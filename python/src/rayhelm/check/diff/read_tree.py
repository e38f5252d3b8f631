"""Read a side from a folder that `rayhelm render` wrote."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rayhelm.check.diff.side import Side, SideRelease
from rayhelm.deploy.charts.helm import Loader
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.render.manifest import MANIFEST, FolderManifest, read_manifest
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.versions import versions

__all__ = ["is_tree", "read_tree", "refuse_several_fleets"]

_HEADER = re.compile(
    r"# Values of chart (?P<chart>[a-z-]+): release `(?P<name>[^`]+)` .*, namespace `(?P<namespace>[^`]+)`"
    r"(, cluster `(?P<cluster>[^`]+)`)?\.$"
)


def is_tree(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def read_tree(folder: Path) -> Side:
    """Read the values of a rendered folder; its fleet file, if it has one, gives pools and prices.

    Raises FleetError if files are missing, or if the folder has the files of another fleet than its fleet file.
    """
    listed = read_manifest(folder)
    if problems := [_missing(folder, name) for name in sorted(listed.files) if not (folder / name).is_file()]:
        raise FleetError(problems)
    found = [
        release
        for name in sorted(listed.files)
        if name.endswith(".yaml") and not name.startswith("manifests/") and (release := _read(folder / name))
    ]
    if not found:
        raise FleetError(_no_values(folder))
    rendered = _read_plan(folder, listed)
    clusters = list(rendered.plan.declared.clusters) if rendered else []
    # Headers name the cluster only if the fleet has several.
    found = [replace(each, cluster=each.cluster or (clusters[0] if len(clusters) == 1 else "")) for each in found]
    releases = {(each.cluster, each.chart, each.namespace, each.name): each for each in found}
    kuberay = {
        each.cluster: (each.values or {}).get("kuberay", {}).get("version", versions().kuberay.default)
        for each in found
        if each.chart == "ray-service"
    }
    notes = () if rendered else (f"{folder} has no fleet file: pools, prices and load times are not known",)
    return Side(str(folder), listed.fleet, releases, kuberay, rendered, notes)


def refuse_several_fleets(folder: Path) -> None:
    """Raise FleetError if a folder without `fleet.yaml` has several fleet files, or none."""
    if not folder.is_dir() or (folder / "fleet.yaml").is_file():
        return
    fleets = [path.name for path in sorted(folder.glob("*.yaml")) if _FLEET.search(path.read_text(errors="replace"))]
    count = f"has {len(fleets)} fleet files ({', '.join(fleets)})"
    found = count if fleets else "has no fleet file and no rendered values"
    fix = Fix(command=f"rayhelm diff {folder / (fleets[0] if fleets else 'fleet.yaml')} NEW", why="name the file")
    raise FleetError(Problem(f"the folder {found}", file=str(folder), fix=fix))


_FLEET = re.compile(r"^fleet:", re.MULTILINE)


def _read_plan(folder: Path, listed: FolderManifest) -> Rendered | None:
    file = folder / (listed.source or "fleet.yaml")
    if not file.is_file():
        return None
    rendered = render_fleet(file)
    if rendered.plan.fleet != listed.fleet:
        raise FleetError(_two_fleets(folder, listed.fleet, file, rendered.plan.fleet))
    return rendered


def _read(path: Path) -> SideRelease | None:
    """Read the values of a release; None for another file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FleetError(Problem(f"cannot be read: {error}", file=str(path), fix=_render_again())) from None
    header = _HEADER.match(text.partition("\n")[0])
    if not header:
        return None
    try:
        values: Any = yaml.load(text, Loader=Loader) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        message = "is not YAML (a merge conflict?)"
        raise FleetError(Problem(message, file=str(path), line=line, fix=_render_again())) from None
    if not isinstance(values, dict):
        raise FleetError(Problem("has no keys", file=str(path), fix=_render_again()))
    return SideRelease(
        chart=header["chart"],
        name=header["name"],
        namespace=header["namespace"],
        cluster=header["cluster"] or "",
        values=values,
        source=str(path),
    )


def _render_again() -> Fix:
    return Fix(command="rayhelm render FLEET -o FOLDER", why="writes every file of the fleet")


def _missing(folder: Path, name: str) -> Problem:
    message = f"is missing: {MANIFEST} lists it, so the folder is only half rendered, or the file was removed"
    return Problem(message, file=str(folder / name), fix=_render_again())


def _no_values(folder: Path) -> Problem:
    return Problem("the folder has no values files of `rayhelm render`", file=str(folder), fix=_render_again())


def _two_fleets(folder: Path, listed: str, file: Path, fleet: str) -> Problem:
    message = (
        f"the folder has the files of fleet `{listed}`, and {file.name} is fleet `{fleet}`: two fleets in one folder"
    )
    return Problem(message, file=str(folder), fix=Fix(command=f"rayhelm render {file} -o OTHER-FOLDER"))
