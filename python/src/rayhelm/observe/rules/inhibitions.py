"""Inhibition rules of Alertmanager: one outage is one page. `data/inhibitions.yaml` has them."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import yaml
from pydantic import Field, TypeAdapter, model_validator

from rayhelm.facts.closed import Closed
from rayhelm.observe.rules.alerts import load_alerts

__all__ = ["Inhibition", "load_inhibitions"]


class Inhibition(Closed):
    """While `source` fires, Alertmanager does not notify about `targets` with the same labels `equal`."""

    source: str
    """Alert that names the cause."""
    targets: Annotated[list[str], Field(min_length=1)]
    """Alerts that follow from it."""
    equal: Annotated[list[str], Field(min_length=1)]
    """Labels whose values are the same in both. A label that neither has counts as the same."""
    because: Annotated[str, Field(min_length=20)]
    """Why the targets follow from the source."""

    @model_validator(mode="after")
    def _has_known_alerts(self) -> "Inhibition":
        if unknown := sorted({self.source, *self.targets} - set(load_alerts())):
            raise ValueError(f"there is no alert {unknown[0]}")
        if self.source in self.targets:
            raise ValueError(f"{self.source} would inhibit itself")
        return self

    def as_rule(self) -> dict[str, Any]:
        """Return it as Alertmanager reads it. A source whose severity was changed inhibits nothing: it may no longer
        page."""
        severity = load_alerts()[self.source].severity
        return {
            "source_matchers": [f'alertname="{self.source}"', f'severity="{severity}"'],
            "target_matchers": [f'alertname=~"{"|".join(self.targets)}"'],
            "equal": self.equal,
        }


@cache
def load_inhibitions() -> tuple[Inhibition, ...]:
    """Return the inhibition rules. Raise ValidationError if one names an alert that does not exist."""
    text = files("rayhelm").joinpath("data/inhibitions.yaml").read_text(encoding="utf-8")
    return tuple(TypeAdapter(list[Inhibition]).validate_python(yaml.safe_load(text)))
