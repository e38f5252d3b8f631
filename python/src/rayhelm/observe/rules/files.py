"""Rule files of a fleet, for a Prometheus without the operator. Chart platform renders them, so helm is needed."""

from collections.abc import Iterator
from pathlib import Path

from rayhelm.deploy.compose.prometheus_rules import build_prometheus_rules
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.errors import Fix, FleetError
from rayhelm.fleet.problems import problem_at

__all__ = ["build_recording_files", "build_rule_files"]

ALERTS = "rayhelm-alerts-"
"""Start of the names of files with alerts."""


def build_rule_files(rendered: Rendered) -> dict[str, str]:
    """Return the rule files by path: below the name of its cluster if the fleet has several. Raise FleetError if no
    cluster asks for rules."""
    files = dict(_files(rendered))
    if files:
        return files
    fix = Fix(
        "prometheus",
        {"url": "http://prometheus:9090", "rules": "ConfigMap", "runbookUrl": "https://git.example.com/docs/runbooks"},
        "with your URLs",
    )
    path = ("clusters", next(iter(rendered.plan.declared.clusters)))
    raise FleetError(problem_at(path, "`prometheus.rules` is None, so there are no rules", fix))


def build_recording_files(rendered: Rendered) -> dict[str, str]:
    """Return the files with recording rules, for a Prometheus that sends no alerts; none if no cluster asks for
    rules."""
    return {name: text for name, text in _files(rendered) if not Path(name).name.startswith(ALERTS)}


def _files(rendered: Rendered) -> Iterator[tuple[str, str]]:
    import yaml

    from rayhelm.deploy.charts.helm import Loader, render

    fleet = rendered.plan.declared
    for release in rendered.releases:
        if not isinstance(release.values, PlatformValues):
            continue
        rules = build_prometheus_rules(release.cluster, rendered.plan, rendered.values)
        if rules.kind == "None":
            continue
        values = release.values.model_copy(update={"prometheus_rules": rules.model_copy(update={"kind": "ConfigMap"})})
        text = render("platform", release.name, release.namespace, select_changed(values))
        folder = f"{release.cluster}/" if len(fleet.clusters) > 1 else ""
        for item in yaml.load_all(text, Loader=Loader):
            if item and item["kind"] == "ConfigMap" and item["metadata"]["name"] == f"{release.name}-rules":
                yield from ((f"{folder}{name}", content) for name, content in item["data"].items())
