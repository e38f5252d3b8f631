"""rayhelm as a library: what the commands `plan`, `render` and `diff` compute, as typed objects.

Nothing is printed or written, and nothing ends the process. An input with problems raises `FleetError`, whose
`problems` have file, line, path, message and fix. A missing program, as helm, raises `MissingError`, and an argument
that is no path `UsageError`. All three are `RayhelmError`.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rayhelm.errors import UsageError
from rayhelm.fleet.find_file import find_fleet_file

if TYPE_CHECKING:
    from rayhelm.check.diff.report import DiffReport
    from rayhelm.planner.plan import Plan

__all__ = ["diff", "plan", "render"]

FleetPath = str | os.PathLike[str]
"""A fleet file, or its folder."""


def plan(fleet: FleetPath) -> "Plan":
    """Plan a fleet: where each model runs, how it is split, how many replicas, what it costs, and why.

    Raises FleetError with all problems of the file."""
    from rayhelm.fleet.load import load_fleet
    from rayhelm.planner.planner import plan_fleet

    return plan_fleet(load_fleet(find_fleet_file(_as_path(fleet))))


def render(fleet: FleetPath, *, manifests: bool = False) -> dict[str, str]:
    """Return the files that `rayhelm render` writes: text by path below the folder of the fleet file.

    `manifests`: also the Kubernetes objects of each release, which the admission policies have accepted; needs helm.

    Raises FleetError with all problems of the file, of values and of objects; MissingError without helm."""
    from rayhelm.check.lint.admission import check_admission
    from rayhelm.deploy.render.files import build_files, build_manifests, render_fleet

    rendered = render_fleet(find_fleet_file(_as_path(fleet)))
    files = build_files(rendered)
    if not manifests:
        return files
    objects = build_manifests(rendered)
    check_admission(rendered, objects)
    return files | objects


def diff(old: FleetPath, new: FleetPath) -> "DiffReport":
    """Forecast what replacing `old` by `new` does to running services. Both can be folders that `rayhelm render` wrote.
    Needs helm.

    Raises FleetError with all problems of one of them; MissingError without helm."""
    from rayhelm.check.diff.compare import compare_sides
    from rayhelm.check.diff.read_side import read_side

    return compare_sides(read_side(_as_path(old)), read_side(_as_path(new)))


def _as_path(fleet: object) -> Path:
    """Raises UsageError for what cannot be a path: another type, no text, or text of several lines."""
    if not isinstance(fleet, str | os.PathLike):
        raise UsageError(f"{type(fleet).__name__} is not a path: give the path of a fleet file, or of its folder")
    text = os.fspath(fleet)
    if not isinstance(text, str) or not text.strip() or any(each in text for each in "\n\r\0"):
        raise UsageError(f"{text[:40]!r} is not a path: give the path of a fleet file, or of its folder")
    return Path(text)
