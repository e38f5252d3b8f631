"""`rayhelm lint` of a fleet: the plan, the charts, the admission policies, and the Serve configs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rayhelm.check.lint.admission import check_releases
from rayhelm.check.lint.locate import locate
from rayhelm.deploy.advice import how_to_get_ray
from rayhelm.deploy.render.argocd import CHART as ARGOCD
from rayhelm.deploy.render.argocd import VALUES_FILE
from rayhelm.deploy.render.files import CHART, Rendered, render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.render.warnings import list_warnings
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.facts.versions import versions
from rayhelm.fleet.yaml_nodes import dotted

__all__ = ["Checked", "NotChecked", "check_fleet", "lint_fleet"]


@dataclass(frozen=True)
class NotChecked:
    """A check that did not run."""

    what: str
    """The check, and why it did not run."""
    how: str = ""
    """How to get what is missing."""
    is_required: bool = False
    """The check is part of every lint, or was requested: without it the result is incomplete."""


@dataclass
class Checked:
    """Results of the checks, and checks that did not run."""

    done: list[str] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, other: "Checked") -> None:
        """Add the results of other checks."""
        self.done += other.done
        self.not_checked += other.not_checked
        self.warnings += other.warnings
        self.problems += other.problems


def lint_fleet(path: Path, *, ask_ray: bool) -> Checked:
    """Check a fleet as `check_fleet` does. Raises FleetError with every problem."""
    checked = check_fleet(path, ask_ray=ask_ray)
    if checked.problems:
        raise FleetError(checked.problems)
    return checked


def check_fleet(path: Path, *, ask_ray: bool) -> Checked:
    """Check a fleet; each problem has its line of the fleet file. Raises FleetError if there is no plan.

    `ask_ray`: also let Ray and vLLM themselves read the Serve configs. It takes seconds: both are imported.
    """
    rendered = render_fleet(path)
    planned = f"{path}: plan of {', '.join(rendered.plan.models)} on {', '.join(rendered.plan.pools)}"
    left_open = list_warnings(rendered.plan)
    checked = Checked([planned], warnings=[*rendered.plan.all_warnings, *left_open])
    configs: dict[str, str] = {}
    made: list[tuple[Release, Sequence[Mapping[str, Any]]]] = []
    for release in (*rendered.releases, *_list_argocd(rendered)):
        try:
            objects = _render_and_lint(release)
            checked.done.append(f"{release.file}: chart {release.chart} renders and passes `helm lint --strict`")
        except FleetError as error:
            checked.problems += [_locate(problem, release, rendered) for problem in error.problems]
            continue
        except MissingError as error:
            checked.not_checked.append(NotChecked(f"charts not checked: {error.what}", error.how, is_required=True))
            break
        if release.chart != ARGOCD:  # the policies are for objects of the other charts
            made.append((release, objects))
        if release.chart == CHART:
            configs[release.name] = next(
                item["spec"]["serveConfigV2"] for item in objects if item["kind"] == "RayService"
            )
    result = check_releases(made, rendered)
    checked.done += result.done
    checked.warnings += result.warnings
    checked.problems += result.problems
    _check_serve_configs(configs, rendered, checked, imports_code=ask_ray)
    if ask_ray:
        _ask_ray(configs, rendered, checked)
    return checked


def _list_argocd(rendered: Rendered) -> Iterator[Release]:
    """Yield the release of chart argocd, if the fleet has it."""
    section = rendered.plan.declared.gitops
    if rendered.argocd and section:
        kubernetes = max(release.kubernetes for release in rendered.releases)
        fleet = rendered.plan.fleet
        yield Release(ARGOCD, fleet, section.namespace, "", rendered.argocd, "Applications", VALUES_FILE, kubernetes)


def _locate(problem: Problem, release: Release, rendered: Rendered) -> Problem:
    """Return the problem of a chart with the line of the model, tenant or pool that its key names."""
    from rayhelm.deploy.charts.helm import split_key

    return locate(split_key(problem), release, rendered)


def _render_and_lint(release: Release) -> list[dict[str, Any]]:
    """Render a release with helm and lint its chart; returns the objects."""
    from rayhelm.deploy.charts import helm

    values, version = select_changed(release.values), release.kubernetes
    objects = helm.template(release.chart, release.name, release.namespace, values, kube_version=version)
    helm.lint(release.chart, values, kube_version=version)
    return objects


def _check_serve_configs(configs: dict[str, str], rendered: Rendered, checked: Checked, *, imports_code: bool) -> None:
    """Check the Serve configs with the keys, types and rules of the pinned Ray and vLLM."""
    from rayhelm.check.lint.ray_service.applications import check_applications
    from rayhelm.check.lint.ray_service.source import CONFIG, read_service_config

    for service, text in configs.items():
        made = read_service_config(service, text)
        found = [
            # The fixes are of the Serve config, which no person edits: the fleet file has other keys.
            Problem(problem.message, re.sub(r"\[(\d+)\]", r".\1", problem.path.removeprefix(f"{dotted(CONFIG)}.")))
            for problem in check_applications(made)
        ]
        _add_serve_problems(found, service, text, rendered, checked)
        if not found:
            known = f"Ray {versions().ray} and vLLM {versions().vllm}"
            checked.done.append(f"{service}: serveConfigV2 has the keys, types and rules of {known}")
        own = [
            each["import_path"]
            for _, each in made.list_applications()
            if not each["import_path"].startswith(("rayhelm.", "ray.serve.llm"))
        ]
        for written in () if imports_code else dict.fromkeys(own):
            what = f"{service}: `{written}` was not imported: its code is in the image. `--serve` imports it"
            checked.not_checked.append(NotChecked(what))


def _ask_ray(configs: dict[str, str], rendered: Rendered, checked: Checked) -> None:
    from rayhelm.check.lint.serve_config import can_check, check_serve_config

    if not can_check():
        what = "Serve config not read by Ray and vLLM: they are not installed in this environment"
        checked.not_checked.append(NotChecked(what, how_to_get_ray(), is_required=True))
        return
    if any(each.is_required for each in checked.not_checked):
        checked.not_checked.append(NotChecked("Serve config not read by Ray and vLLM: it is made by the charts"))
        return
    for service, text in configs.items():
        found = check_serve_config(text)
        _add_serve_problems(found, service, text, rendered, checked)
        if not found:
            checked.done.append(f"{service}: Ray's schema, ray.serve.llm and vLLM's parser accept serveConfigV2")


def _add_serve_problems(
    found: Sequence[Problem], service: str, text: str, rendered: Rendered, checked: Checked
) -> None:
    """Add the problems of a Serve config, each with the line of the model that it is about."""
    release = next(each for each in rendered.releases if each.chart == CHART and each.name == service)
    config = json.loads(text)
    for problem in found:
        checked.problems.append(locate(problem, release, rendered, _list_served_names(config, problem.path)))


def _list_served_names(config: Any, path: str) -> list[str]:
    """Return the model ids and application names on a path of a Serve config (`applications.0.args.llm_configs.1`), the
    last one first."""
    names: list[str] = []
    for step in path.split(".") if path else ():
        try:
            config = config[int(step)] if isinstance(config, list) else config[step]
        except (KeyError, IndexError, ValueError, TypeError):
            break
        if isinstance(config, dict):
            names += [config["name"]] if "name" in config else []
            names += [config["model_loading_config"]["model_id"]] if "model_loading_config" in config else []
    return names[::-1]
