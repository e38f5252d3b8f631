"""`rayhelm lint` of a fleet: the plan, the charts, the admission policies, and the Serve config by Ray and vLLM."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rayhelm.check.lint.admission import check_releases
from rayhelm.check.lint.locate import locate, names_in
from rayhelm.deploy.advice import how_to_get_ray
from rayhelm.deploy.render.argocd import CHART as ARGOCD
from rayhelm.deploy.render.argocd import VALUES_FILE
from rayhelm.deploy.render.files import CHART, Rendered, render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.render.warnings import list_warnings
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.fleet.load import LoadedFleet

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


def lint_fleet(path: Path, *, ask_ray: bool | None) -> Checked:
    """Check a fleet as `check_fleet` does. Raises FleetError with every problem."""
    checked = check_fleet(path, ask_ray=ask_ray)
    if checked.problems:
        raise FleetError(checked.problems)
    return checked


def check_fleet(path: Path, *, ask_ray: bool | None) -> Checked:
    """Check a fleet; each problem has its line of the fleet file. Raises FleetError if there is no plan.

    `ask_ray`: True requires Ray and vLLM, None uses them if they are installed, False never does.
    """
    rendered = render_fleet(path)
    planned = f"{path}: plan of {', '.join(rendered.plan.models)} on {', '.join(rendered.plan.pools)}"
    left_open = list_warnings(rendered.plan, rendered.loaded)
    checked = Checked([planned], warnings=[*rendered.plan.all_warnings, *left_open])
    configs: dict[str, str] = {}
    made: list[tuple[Release, Sequence[Mapping[str, Any]]]] = []
    for release in (*rendered.releases, *_list_argocd(rendered)):
        try:
            objects = _render_and_lint(release)
            checked.done.append(f"{release.file}: chart {release.chart} renders and passes `helm lint --strict`")
        except FleetError as error:
            checked.problems += [_locate(problem, release, rendered.loaded) for problem in error.problems]
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
    result = check_releases(made, rendered.loaded)
    checked.done += result.done
    checked.warnings += result.warnings
    checked.problems += result.problems
    if ask_ray is not False:
        _ask_ray(configs, rendered, checked, is_required=bool(ask_ray))
    return checked


def _list_argocd(rendered: Rendered) -> Iterator[Release]:
    """Yield the release of chart argocd, if the fleet has it."""
    section = rendered.loaded.fleet.gitops
    if rendered.argocd and section:
        kubernetes = max(release.kubernetes for release in rendered.releases)
        fleet = rendered.plan.fleet
        yield Release(ARGOCD, fleet, section.namespace, "", rendered.argocd, "Applications", VALUES_FILE, kubernetes)


def _locate(problem: Problem, release: Release, loaded: LoadedFleet) -> Problem:
    """Return the problem of a chart with the line of the model, tenant or pool that its key names."""
    from rayhelm.deploy.charts.helm import split_key

    keyed = split_key(problem)
    return locate(keyed, release, loaded, names_in(keyed.path))


def _render_and_lint(release: Release) -> list[dict[str, Any]]:
    """Render a release with helm and lint its chart; returns the objects."""
    from rayhelm.deploy.charts import helm

    values, version = select_changed(release.values), release.kubernetes
    objects = helm.template(release.chart, release.name, release.namespace, values, kube_version=version)
    helm.lint(release.chart, values, kube_version=version)
    return objects


def _ask_ray(configs: dict[str, str], rendered: Rendered, checked: Checked, *, is_required: bool) -> None:
    from rayhelm.check.lint.serve_config import can_check, check_serve_config

    if not can_check():
        what = "Serve config not checked by Ray and vLLM: they are not installed in this environment"
        checked.not_checked.append(NotChecked(what, how_to_get_ray(), is_required))
        return
    if any(each.is_required for each in checked.not_checked):
        checked.not_checked.append(NotChecked("Serve config not checked by Ray and vLLM: it is made by the charts"))
        return
    releases = {release.name: release for release in rendered.releases if release.chart == CHART}
    for service, text in configs.items():
        found = check_serve_config(text)
        for problem in found:
            names = _list_served_names(json.loads(text), problem.path)
            checked.problems.append(locate(problem, releases[service], rendered.loaded, names))
        if not found:
            checked.done.append(f"{service}: Ray's schema, ray.serve.llm and vLLM's parser accept serveConfigV2")


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
