"""The Git work tree that a fleet is rendered into, compared with the paths that its Applications read."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rayhelm.deploy.render.argocd import CHART
from rayhelm.errors import Fix, Problem
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan

__all__ = ["find_repository_problems"]

_URL = re.compile(
    r"^(?:[a-z+]+://)?(?:[^@/]+@)?(?P<host>[^/:]*)(?::\d+(?=/))?[:/]*(?P<path>.*?)(?:\.git)?/*$", re.IGNORECASE
)


def find_repository_problems(plan: Plan, folder: Path) -> Iterator[Problem]:
    """Yield paths of `gitops` that do not exist in the work tree of `folder`. Nothing is known of a folder outside of a
    work tree, or in one of another repository."""
    section = plan.declared.gitops
    root = _find_root(folder) if section else None
    if not section or not root or _normalize(section.repository.url) not in _list_remotes(root):
        return
    place = folder.resolve().relative_to(root).as_posix()
    place = "" if place == "." else place
    if section.repository.path != place:
        message = (
            f"it is `{section.repository.path}`, and the files are written to `{place}` of that repository, so no "
            "Application finds its values"
        )
        yield problem_at(("gitops", "repository", "path"), message, Fix("", place))
    charts = section.charts
    is_here = (
        charts.path and not charts.version and _normalize(charts.url or section.repository.url) in _list_remotes(root)
    )
    if is_here and not (root / charts.path / CHART / "Chart.yaml").is_file():
        message = f"folder `{charts.path}` of that repository has no chart `{CHART}`, so no Application finds its chart"
        fix = Fix(command=f'cp -r "$(rayhelm charts)" {root / charts.path}')
        yield problem_at(("gitops", "charts", "path"), message, fix)


def _find_root(folder: Path) -> Path | None:
    place = folder.resolve()
    return next((each for each in (place, *place.parents) if (each / ".git").exists()), None)


def _list_remotes(root: Path) -> set[str]:
    """Return the URLs of the remotes; none without git."""
    command = ["git", "-C", str(root), "config", "--get-regexp", r"^remote\..*\.url$"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return set()
    return {_normalize(line.partition(" ")[2]) for line in done.stdout.splitlines()}


def _normalize(url: str) -> str:
    """Return `<host>/<path>`: Argo CD may read by HTTPS what people push by SSH."""
    found = _URL.match(url)
    return f"{found['host'].lower()}/{found['path'].strip('/')}" if found else url
