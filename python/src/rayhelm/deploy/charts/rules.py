"""Rules of the charts, each written once in `data/rules/<chart>.yaml`: message, fix, and values that break it."""

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["POD_PATHS", "Rule", "rules"]

POD_PATHS = {
    "ray-service": ("head", "workerGroups.gpu", "weights.download"),
    "gateway": ("",),
    "platform": ("metrics.adapter", "doctor"),
}
"""Charts that make pods, and the paths of the pods' settings in the smallest values."""


class Rule(Closed):
    """One rule, and values that break it."""

    key: str = ""
    """Key of the wrong value, which the chart prints before the message."""
    message: str
    """Message; the chart replaces `{name}`."""
    fix: str
    """Fix; the chart replaces `{name}` here too."""
    layers: tuple[Literal["chart", "schema", "model", "policy"], ...]
    """Where the rule is checked: the templates in `validate/`, values.schema.json, the pydantic model, or an admission
    policy."""
    ends: bool = False
    """Whether the chart fails at once: the checks after this one need what the rule requires."""
    since: str = ""
    """First version of KubeRay with this rule."""
    until: str = ""
    """Last version of KubeRay with this rule."""
    release: str = ""
    """Release name with which the bad values break the rule; empty for any name."""
    kubernetes: str = ""
    """Version of Kubernetes with which the bad values break the rule; empty for any version."""
    bad: tuple[dict[str, Any], ...]
    """Values that break the rule, each merged over the smallest valid values."""


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times as fast


@cache
def rules(chart: str) -> dict[str, Rule]:
    """Return the rules of a chart by id, those of its pods last."""
    return {name: Rule.model_validate(rule) for name, rule in (_read(chart) | _read_pod_rules(chart)).items()}


def _read_pod_rules(chart: str) -> dict[str, Any]:
    if chart not in POD_PATHS:
        return {}
    return {
        name: {**rule, "bad": [_nest(path, bad) for bad in rule["bad"] for path in POD_PATHS[chart]]}
        for name, rule in _read("pods").items()
    }


def _nest(path: str, values: dict[str, Any]) -> dict[str, Any]:
    for part in reversed(path.split(".") if path else []):
        values = {part: values}
    return values


def _read(name: str) -> dict[str, Any]:
    text = files("rayhelm").joinpath(f"data/rules/{name}.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.load(text, Loader=LOADER)
    return found
