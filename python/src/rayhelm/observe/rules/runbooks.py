"""docs/runbooks: a page for each alert, and an index of alerts and recorded series."""

import re
from functools import cache
from importlib.resources import files

from rayhelm.facts.metrics import load_exporters
from rayhelm.observe.rules.alerts import GROUPS, Alert, load_alerts

__all__ = ["build_runbooks", "find_keys", "find_variables", "load_keys"]

_VARIABLES = {
    "NAMESPACE": "namespace",
    "SERVICE": "rayhelm_dev_service",
    "NAME": "name",
    "POD": "pod",
    "NODE": "node",
    "JOB_NAME": "job_name",
    "GATEWAY": "rayhelm_dev_gateway",
    "INSTANCE": "instance",
    "CHECK": "check",
    "SECRET": "secret",
    "TENANT": "tenant",
    "MODEL": "model",
    "OWNER": "owner",
}
"""Variables of the commands that a reader sets, and the label of the alert that each one has."""


def build_runbooks() -> dict[str, str]:
    """Return the pages by file name."""
    pages = {f"{alert.name}.md": _page(alert) for alert in load_alerts().values()}
    return {"README.md": _index(), **pages}


def _page(alert: Alert) -> str:
    variables = find_variables(alert)
    return _render(
        "runbook.md.j2", alert=alert, meaning=_meaning(alert.description), variables=variables, keys=find_keys(alert)
    )


@cache
def load_keys() -> dict[str, dict[str, str]]:
    """Return the chart and its key by key of the fleet file."""
    import yaml

    found: dict[str, dict[str, str]] = yaml.safe_load(_text("data/runbook_keys.yaml"))
    return found


def find_keys(alert: Alert) -> dict[str, dict[str, str]]:
    """Return the chart and its key for each key of the fleet file that the fix of an alert names."""
    # `replicas: {min: 0}` names `replicas`.
    named = {part for code in re.findall(r"`([^`]+)`", alert.runbook.fix) for part in (code, code.partition(": {")[0])}
    return {name: key for name, key in load_keys().items() if name in named}


def find_variables(alert: Alert) -> dict[str, str]:
    """Return the variables that a reader sets before the commands of an alert, with the label of each."""
    used = re.findall(r"\$\{?([A-Z_]+)\b", alert.runbook.check + alert.runbook.fix)
    return {name: label for name, label in _VARIABLES.items() if name in used}


def _index() -> str:
    alerts = load_alerts().values()
    return _render(
        "runbooks.md.j2",
        groups={title: [alert for alert in alerts if alert.group == group] for group, title in GROUPS.items()},
        meanings={alert.name: _meaning(alert.summary) for alert in alerts},
        exceptions=[alert.name for alert in alerts if alert.severity == "info"],
        series=load_exporters()["rules"].metrics,
    )


def _meaning(text: str) -> str:
    """A text of an alert with the names of labels in place of their values."""
    text = re.sub(r"\{\{ with .*?query \}\}.*?\{\{ end \}\}", "the boundary", text)
    text = re.sub(r"\{\{ with \$labels\.(\w+) \}\}.*?\{\{ end \}\}", r"`<\1>`", text)
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"`<\1>`", text)
    text = re.sub(r"\{\{ \$value[^}]*\}\}", "`<value>`", text)
    text = text.replace("the boundary, the boundary of", "the boundary of")
    # Neighbors such as namespace/name are one piece of code.
    return re.sub(r">`([/:])`<", r">\1<", text).strip()


def _render(template: str, **values: object) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_text(f"data/templates/{template}")).render(**values).rstrip() + "\n"


def _text(path: str) -> str:
    return files("rayhelm").joinpath(path).read_text(encoding="utf-8")
