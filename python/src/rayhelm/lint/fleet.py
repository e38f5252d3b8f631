"""`rayhelm lint`: the verdicts of every layer before anything reaches a cluster, down to Ray and vLLM themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.lint.admission import judge_releases
from rayhelm.lint.locate import placed
from rayhelm.render.files import CHART, Rendered, render_fleet
from rayhelm.render.releases import Release
from rayhelm.values.emit import changed

__all__ = ["Checked", "lint_fleet"]


@dataclass
class Checked:
    """What was checked, and what could not be."""

    done: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def lint_fleet(path: Path, *, ask_ray: bool) -> Checked:
    """Check everything. Raises FleetError with every problem, placed in the fleet file."""
    rendered = render_fleet(path)
    planned = f"{path}: plan of {', '.join(rendered.plan.models)} on {', '.join(rendered.plan.pools)}"
    checked = Checked([planned], warnings=list(rendered.plan.all_warnings))
    problems: list[Problem] = []
    configs: dict[str, str] = {}
    made: list[tuple[Release, Sequence[Mapping[str, Any]]]] = []
    for release in rendered.releases:
        try:
            objects = _by_helm(release)
            checked.done.append(f"{release.file}: chart {release.chart} renders and passes `helm lint --strict`")
        except FleetError as error:
            problems += [placed(problem, release, rendered.loaded) for problem in error.problems]
            continue
        except MissingError as error:
            checked.left_out.append(f"{release.file}: {error.what}")
            continue
        made.append((release, objects))
        if release.chart == CHART:
            configs[release.name] = next(
                item["spec"]["serveConfigV2"] for item in objects if item["kind"] == "RayService"
            )
    judged = judge_releases(made, rendered.loaded)
    checked.done += judged.done
    checked.warnings += judged.warnings
    problems += judged.problems
    problems += _by_ray(configs, rendered, checked) if ask_ray else []
    if problems:
        raise FleetError(problems)
    return checked


def _by_helm(release: Release) -> list[dict[str, Any]]:
    """The objects that helm renders."""
    from rayhelm.charts import helm

    values, version = changed(release.values), release.kubernetes
    objects = helm.template(release.chart, release.name, release.namespace, values, kube_version=version)
    helm.lint(release.chart, values, kube_version=version)
    return objects


def _by_ray(configs: dict[str, str], rendered: Rendered, checked: Checked) -> list[Problem]:
    if find_spec("ray") is None or find_spec("vllm") is None:
        checked.left_out.append("serveConfigV2 by Ray and vLLM themselves: not installed here")
        return []
    from rayhelm.local.serve_config import check_serve_config

    problems: list[Problem] = []
    releases = {release.name: release for release in rendered.releases if release.chart == CHART}
    for service, text in configs.items():
        found = check_serve_config(text)
        problems += [placed(problem, releases[service], rendered.loaded) for problem in found]
        if not found:
            checked.done.append(f"{service}: Ray's schema, ray.serve.llm and vLLM's parser accept serveConfigV2")
    return problems
