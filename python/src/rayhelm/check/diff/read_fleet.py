"""Read a side from a fleet file, in the file system or in a revision of git."""

import subprocess
from dataclasses import replace
from pathlib import Path

from rayhelm.check.diff.side import Side, SideRelease
from rayhelm.deploy.render.files import Rendered, render_fleet, render_plan
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import Fix, FleetError, MissingError, Problem
from rayhelm.facts.fleet_folder import OUTSIDE, is_plain_path
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import build_outside_problem, parse_fleet
from rayhelm.fleet.measurements import parse_measurements
from rayhelm.planner.planner import plan_fleet

__all__ = ["build_side", "find_merge_base", "read_fleet", "read_revision"]

_FETCH = Fix(
    command="git fetch --unshallow", why="a shallow clone of a CI job lacks older commits; or name another one"
)


def read_fleet(path: Path) -> Side:
    """Plan a fleet file and build its values. Raises FleetError."""
    return build_side(str(path), render_fleet(path))


def read_revision(revision: str, path: Path) -> Side:
    """Read a fleet file as it is in a revision, without a checkout. Raises FleetError and MissingError."""
    folder, label = path.absolute().parent, f"{revision}:{path}"
    if not folder.is_dir():
        raise FleetError(Problem("the folder does not exist; git reads the revision from it", file=str(folder)))
    _git(folder, "rev-parse", "--show-toplevel", problem=_no_repository(folder))
    _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
        problem=_no_revision(revision),
    )  # fmt: skip
    text = _git(folder, "show", f"{revision}:./{path.name}", problem=_no_file(revision, path))
    loaded = parse_fleet(parse_document(text, label))
    if name := loaded.fleet.measurements:
        if not is_plain_path(name):
            raise FleetError(build_outside_problem(loaded, OUTSIDE))
        inside = f"{revision}:./{name}"
        measured = parse_measurements(_git(folder, "show", inside, problem=_no_file(revision, folder / name)), inside)
        loaded = replace(loaded, measured=measured)
    return build_side(label, render_plan(plan_fleet(loaded)))


def find_merge_base(first: str, last: str, path: Path) -> str:
    """Return the common ancestor of two revisions, which `A...B` compares with. Raises FleetError."""
    problem = Problem(f"git knows no common ancestor of `{first}` and `{last}`", fix=_FETCH)
    return _git(path.absolute().parent, "merge-base", "--end-of-options", first, last, problem=problem).strip()


def build_side(label: str, rendered: Rendered) -> Side:
    releases = {
        (each.cluster, each.chart, each.namespace, each.name): SideRelease(
            chart=each.chart,
            name=each.name,
            namespace=each.namespace,
            cluster=each.cluster,
            values=select_changed(each.values),
            kubernetes=each.kubernetes,
            source=label,
        )
        for each in rendered.releases
    }
    kuberay = {name: cluster.kuberay for name, cluster in rendered.plan.declared.clusters.items()}
    return Side(label, rendered.plan.fleet, releases, kuberay, rendered)


def _git(folder: Path, *words: str, problem: Problem) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MissingError("git was not found", "install git, or give two fleet files") from None
    if done.returncode:
        raise FleetError(replace(problem, message=f"{problem.message} {_quote(done.stderr)}".strip()))
    return done.stdout


def _quote(error: str) -> str:
    """Return the first line of git's message in parentheses."""
    line = error.strip().partition("\n")[0].removeprefix("fatal: ")
    return f"({line})" if line else ""


def _no_repository(folder: Path) -> Problem:
    fix = Fix(command="rayhelm diff OLD NEW", why="two fleet files; a range A..B needs a git repository")
    return Problem("the folder is in no git repository", file=str(folder), fix=fix)


def _no_revision(revision: str) -> Problem:
    return Problem(f"git does not know the revision `{revision}`, and there is no such file or folder", fix=_FETCH)


def _no_file(revision: str, path: Path) -> Problem:
    fix = Fix(command=f"git log --oneline -- {path}", why="the commits that have the file")
    return Problem(f"the file does not exist in revision `{revision}`", file=str(path), fix=fix)
