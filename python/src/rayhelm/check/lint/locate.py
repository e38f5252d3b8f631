"""Find the line of the fleet file that causes a problem of a release."""

from collections.abc import Sequence
from dataclasses import replace

from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.render.releases import Release
from rayhelm.errors import Problem
from rayhelm.fleet.yaml_nodes import dotted

__all__ = ["locate", "names_in"]


def locate(problem: Problem, release: Release, rendered: Rendered, names: Sequence[str] = ()) -> Problem:
    """Return the problem with file and line of the fleet file. `names`: models, tenants or pools that it concerns."""
    origins = Origins(release.chart, release.name, release.cluster, rendered.plan)
    origin, source = origins.find(problem.path, names), rendered.plan.source
    return replace(problem, file=source.file, line=source.line(origin), path=problem.path or dotted(origin))


def names_in(path: str) -> tuple[str, ...]:
    """Return the names in a dotted path of the values: `serve.applications.chat.models.chat` has `chat`. No name has
    dots."""
    return tuple(step.partition("[")[0] for step in path.split(".")) if path else ()
