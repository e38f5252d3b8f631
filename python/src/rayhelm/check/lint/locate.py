"""Find the line of the fleet file that causes a problem of a release."""

from collections.abc import Sequence
from dataclasses import replace

from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.render.releases import Release
from rayhelm.errors import Problem
from rayhelm.fleet.yaml_nodes import dotted

__all__ = ["locate"]


def locate(problem: Problem, release: Release, rendered: Rendered, names: Sequence[str] = ()) -> Problem:
    """Return the problem with file and line of the fleet file. `names`: models, tenants or pools that it concerns."""
    origins = Origins(release.chart, release.name, release.cluster, rendered.plan)
    origin, source = origins.find(problem.path, names), rendered.plan.source
    return replace(problem, file=source.file, line=source.line(origin), path=problem.path or dotted(origin))
