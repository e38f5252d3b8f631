"""Alerts: condition, texts, runbook and tests, one file each (`data/alerts/<Name>.yaml`)."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.closed import Closed
from rayhelm.observe.rules.expressions import expand

__all__ = ["GROUPS", "Alert", "AlertCase", "AlertTests", "Runbook", "load_alerts", "read_alert"]

GROUPS = {
    "slo": "Service level objectives",
    "service": "Services and engines",
    "ray": "Ray clusters and RayServices",
    "gpu": "GPUs",
    "gateway": "Gateway",
    "kubernetes": "Kubernetes objects",
    "prometheus": "Prometheus",
}
"""Groups of alerts, in the order of the index."""

_OF_THE_SERVICE = {"namespace", "rayhelm_dev_service", "instance", "pod"}
"""Labels that most series have."""
_PARTS = {
    "cause": "what usually makes it fire",
    "check": "how to find which cause it is, with commands",
    "fix": "what to do, in steps",
}

PromDuration = Annotated[str, Field(pattern=r"^[0-9]+[mhd]$")]
Markdown = Annotated[str, Field(min_length=20)]


class Runbook(Closed):
    """What a person does who is paged: docs/runbooks/<Name>.md."""

    cause: Markdown
    """What usually makes the alert fire."""
    check: Markdown
    """How to find which of the causes it is, with commands."""
    fix: Markdown
    """What to do."""


class AlertCase(Closed):
    """Series of a test, in the notation of promtool. `$S` `$M` `$E` `$G` `$K` stand for common labels."""

    at: PromDuration
    """Time at which the state of the alert is read."""
    series: dict[str, Annotated[str, Field(strict=True)]]
    """Quote a value such as `'0x60'`, which YAML takes for a number."""
    labels: dict[str, str] = {}
    """Labels of the firing alert that the test requires."""


class AlertTests(Closed):
    """A case in which the alert fires, one near it in which it does not, and one of an idle service."""

    step: PromDuration = "1m"
    """Time between samples, and between evaluations of the rules."""
    firing: AlertCase
    firing_too: AlertCase | None = None
    """Another case in which it fires, for another cause."""
    silent: AlertCase | None = None
    idle: AlertCase | None = None


class Alert(Closed):
    """One alert."""

    name: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]+$")]
    """The name of the file."""
    group: Literal["slo", "service", "ray", "gpu", "gateway", "kubernetes", "prometheus"]
    severity: Literal["critical", "warning", "info", "none"]
    """`critical` pages, `warning` waits for the next working day, `info` is for a report."""
    pending: Annotated[PromDuration, Field(alias="for")]
    """How long the condition holds before the alert fires."""
    expr: Annotated[str, Field(min_length=1)]
    """PromQL with calls of query functions."""
    labels: dict[str, str] = {}
    """Labels beside those of the query, as templates of Prometheus: what inhibition rules compare."""
    summary: Annotated[str, Field(min_length=10)]
    description: Annotated[str, Field(min_length=40)]
    needs: str = ""
    """What has to be scraped, besides services and gateways."""
    always: bool = False
    """It fires in normal operation, so that its absence is noticed."""
    runbook: Runbook
    tests: AlertTests

    @property
    def file(self) -> str:
        return _file(self.name)

    @property
    def query(self) -> str:
        """Its PromQL."""
        return expand(self.expr, self.file)


@cache
def load_alerts() -> dict[str, Alert]:
    """Return the alerts by name, in the order of groups and names. Raise FleetError if a file is wrong."""
    folder = files("rayhelm").joinpath("data/alerts")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".yaml")), key=lambda path: path.name)
    names = {path.name.removesuffix(".yaml") for path in paths}
    found = [read_alert(path.name.removesuffix(".yaml"), path.read_text(encoding="utf-8"), names) for path in paths]
    order = list(GROUPS)
    return {alert.name: alert for alert in sorted(found, key=lambda alert: order.index(alert.group))}


def read_alert(name: str, text: str, names: set[str]) -> Alert:
    """Read one file; `names` are those of all alerts. Raise FleetError with every problem of it."""
    file = _file(name)
    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        alert = Alert.model_validate({"name": name, **(data if isinstance(data, dict) else {})})
    except yaml.YAMLError as error:
        raise FleetError(Problem(f"is not YAML: {error}", file=file)) from None
    except ValidationError as error:
        raise FleetError([_describe(file, text, each) for each in error.errors()]) from None
    if problems := [*_check_tests(alert), *_check_runbook(alert, names)]:
        raise FleetError(problems)
    return alert


def _file(name: str) -> str:
    return f"data/alerts/{name}.yaml"


def _describe(file: str, text: str, error: Any) -> Problem:
    """A problem that pydantic found, at its line."""
    path = ".".join(map(str, error["loc"]))
    parts = {f"runbook.{key}": Fix(f"runbook.{key}", f"Markdown: {about}") for key, about in _PARTS.items()}
    whole = Fix("runbook", {key: f"Markdown: {about}" for key, about in _PARTS.items()})
    fixes = {"runbook": whole, **parts, "severity": Fix("severity", "warning"), "for": Fix("for", "10m")}
    message = "is missing" if error["type"] == "missing" else error["msg"]
    return Problem(message, path=path, file=file, line=_line(text, path), fix=fixes.get(path, ""))


def _line(text: str, path: str) -> int | None:
    key = re.escape(path.rpartition(".")[2])
    return next((number for number, line in enumerate(text.splitlines(), 1) if re.match(rf"\s*{key}:", line)), None)


def _check_tests(alert: Alert) -> Iterator[Problem]:
    if not alert.always and not (alert.tests.silent and alert.tests.idle):
        fix = Fix("tests.idle", {"at": "30m", "series": {'up{$S,pod="chat-head"}': "1x60"}})
        message = "a silent and an idle case are required: no alert may fire for an idle service"
        yield Problem(message, path="tests", file=alert.file, fix=fix)
    used = set(re.findall(r"\$labels\.(\w+)", alert.summary)) - _OF_THE_SERVICE
    if unknown := sorted(used - set(alert.tests.firing.labels)):
        message = f"the summary uses the label {unknown[0]}, which the firing case does not require"
        yield Problem(message, path="tests.firing.labels", file=alert.file, fix=Fix("labels", {unknown[0]: "value"}))


def _check_runbook(alert: Alert, names: set[str]) -> Iterator[Problem]:
    if "```sh" not in alert.runbook.check:
        fix = Fix("runbook.check", "```sh\nkubectl get pods -n $NAMESPACE\n```\n")
        yield Problem("has no block of commands", path="runbook.check", file=alert.file, fix=fix)
    for part in _PARTS:
        linked = set(re.findall(r"\]\(([A-Za-z]+)\.md\)", getattr(alert.runbook, part)))
        if unknown := sorted(linked - names):
            message = f"links to {unknown[0]}.md, and there is no alert {unknown[0]}"
            fix = Fix(f"runbook.{part}", "See [ScalingStuck](ScalingStuck.md).")
            yield Problem(message, path=f"runbook.{part}", file=alert.file, fix=fix)
