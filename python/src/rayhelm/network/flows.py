"""The flows of `data/network/flows.yaml`: who may reach whom, written by hand."""

import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Self

import yaml
from pydantic import Field, model_validator

from rayhelm.closed import Closed

__all__ = ["ChartFlows", "Flow", "load_chart_flows"]

Value = bool | int | str
PODS = re.compile(r"pods\((.+)\)")


class Flow(Closed):
    """Connections of one purpose."""

    from_: Annotated[tuple[str, ...], Field(alias="from", min_length=1)]
    """Who opens them: roles, or paths in the release's values."""
    to: Annotated[tuple[str, ...], Field(min_length=1)]
    """Who is called, alike."""
    ports: Annotated[tuple[int | str, ...], Field(min_length=1)]
    """TCP ports, `53/UDP`, `every`, or paths."""
    each: str = ""
    """Path of entries, for each of which the flow stands once."""
    while_: Annotated[dict[str, Value], Field(alias="while")] = {}
    """Values that have to be so."""
    same_namespace: bool = False
    """Whether others in the release's own namespace are opened by it as well: its policies are theirs too."""
    why: str
    """What it is for."""


class ChartFlows(Closed):
    """All flows of a chart's releases."""

    policies: dict[str, Value]
    """Values without which the chart has no NetworkPolicies."""
    pods: dict[str, str]
    """What readers know a release's pods by, by their role."""
    others: dict[str, str]
    """What readers know others by, by the path of the value that names them."""
    flows: dict[str, Flow]

    @model_validator(mode="after")
    def _everybody_has_a_name(self) -> Self:
        named = self.pods.keys() | self.others.keys()
        for name, flow in self.flows.items():
            if nameless := [end for end in (*flow.from_, *flow.to) if end not in named]:
                raise ValueError(f"flow {name}: nobody says who {', '.join(nameless)} is")
        return self


@cache
def load_chart_flows() -> dict[str, ChartFlows]:
    """Flows by chart."""
    text = files("rayhelm").joinpath("data/network/flows.yaml").read_text(encoding="utf-8")
    return {chart: ChartFlows.model_validate(flows) for chart, flows in yaml.safe_load(text).items()}
