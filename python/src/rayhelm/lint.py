"""`rayhelm lint`: the verdicts of every layer before anything reaches a cluster, down to Ray and vLLM themselves."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.fleet_files import CHART, Rendered, render_fleet
from rayhelm.releases import Release
from rayhelm.spec.fleet import Fleet
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
    made: list[tuple[Release, list[dict[str, Any]]]] = []
    for release in rendered.releases:
        try:
            objects = _by_helm(release)
            checked.done.append(f"{release.file}: chart {release.chart} renders and passes `helm lint --strict`")
        except FleetError as error:
            problems += [_placed(problem, release, rendered) for problem in error.problems]
            continue
        except MissingError as error:
            checked.left_out.append(f"{release.file}: {error.what}")
            continue
        made.append((release, objects))
        if release.chart == CHART:
            configs[release.name] = next(
                item["spec"]["serveConfigV2"] for item in objects if item["kind"] == "RayService"
            )
    problems += _by_policies(made, rendered, checked)
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


def _by_policies(
    made: list[tuple[Release, list[dict[str, Any]]]], rendered: Rendered, checked: Checked
) -> list[Problem]:
    """What the API server of each cluster would refuse, by the policies that the fleet itself brings there."""
    from rayhelm.lint_admission import policies_by_cluster, problems_of

    refused: list[Problem] = []
    for cluster, policies in policies_by_cluster(made).items():
        before = len(refused)
        for release, problem, denied in problems_of(cluster, policies, made):
            placed = _placed(problem, release, rendered)
            if denied:
                refused.append(placed)
            else:
                checked.warnings.append(str(placed))
        if len(refused) == before:
            checked.done.append(f"cluster `{cluster}`: {len(policies)} admission policies let everything pass")
    return refused


def _by_ray(configs: dict[str, str], rendered: Rendered, checked: Checked) -> list[Problem]:
    if find_spec("ray") is None or find_spec("vllm") is None:
        checked.left_out.append("serveConfigV2 by Ray and vLLM themselves: not installed here")
        return []
    from rayhelm.serving.check import check_serve_config

    problems: list[Problem] = []
    releases = {release.name: release for release in rendered.releases if release.chart == CHART}
    for service, text in configs.items():
        found = check_serve_config(text)
        problems += [_placed(problem, releases[service], rendered) for problem in found]
        if not found:
            checked.done.append(f"{service}: Ray's schema, ray.serve.llm and vLLM's parser accept serveConfigV2")
    return problems


def _placed(problem: Problem, release: Release, rendered: Rendered) -> Problem:
    """A problem of the values, at the place of the fleet file that it comes from: the first of those that might be
    meant whose name is told, else the last."""
    told = f"{problem.path} {problem.message}"
    places = list(_places(release, rendered.loaded.fleet))
    meant = next((place for place in places if re.search(rf"(?<![\w-]){place[1]}(?![\w-])", told)), places[-1])
    here = rendered.loaded.document.problem(meant, problem.message)
    return replace(problem, file=here.file, line=here.line, path=problem.path or here.path)


def _places(release: Release, fleet: Fleet) -> Iterator[tuple[str, ...]]:
    """Where the values of a release come from, each with its name second."""
    if release.chart == "tenant":
        yield ("tenants", release.name)
        return
    if release.chart == CHART:
        models = fleet.models_of(release.name)
        yield from (("models", model) for model in models)
        yield ("models", models[0])
        return
    if release.chart == "platform":
        yield from (("pools", name) for name, pool in fleet.pools.items() if pool.cluster == release.cluster)
        yield ("clusters", release.cluster)
        return
    yield from (("tenants", tenant) for tenant in fleet.tenants)
    yield from (("models", model) for model in fleet.models)
    yield ("clusters", release.cluster, "gateway")
