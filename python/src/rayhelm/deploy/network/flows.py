"""The flows of `data/network/flows.yaml`: allowed connections, written by hand."""

import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Self

import yaml
from pydantic import Field, model_validator

from rayhelm.facts.closed import Closed

__all__ = ["ChartFlows", "Flow", "load_chart_flows"]

Value = bool | int | str
PODS = re.compile(r"pods\((.+)\)")


class Flow(Closed):
    """Connections of one purpose."""

    from_: Annotated[tuple[str, ...], Field(alias="from", min_length=1)]
    """Ends that open the connections: roles, or paths in the values."""
    to: Annotated[tuple[str, ...], Field(min_length=1)]
    """Ends that accept the connections: roles, or paths in the values."""
    ports: Annotated[tuple[int | str, ...], Field(min_length=1)]
    """TCP ports, `53/UDP`, `every`, or paths."""
    each: str = ""
    """Path of entries; the flow exists once for each."""
    while_: Annotated[dict[str, Value], Field(alias="while")] = {}
    """Required values by path."""
    same_namespace: bool = False
    """Peers in the release's namespace get a policy for their end too."""
    why: str
    """Purpose."""


class ChartFlows(Closed):
    policies: dict[str, Value]
    """Values without which the chart has no NetworkPolicies."""
    pods: dict[str, str]
    """Names of the release's pods for readers, by role."""
    namespaces: dict[str, str] = {}
    """Paths of the namespaces of roles; a role without one, or with an empty value, is in that of the release."""
    others: dict[str, str]
    """Names of other peers for readers, by the path of their value."""
    flows: dict[str, Flow]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        named = self.pods.keys() | self.others.keys()
        for name, flow in self.flows.items():
            if nameless := [end for end in (*flow.from_, *flow.to) if end not in named]:
                raise ValueError(f"flow {name}: {', '.join(nameless)} is neither in `pods` nor in `others`")
        return self


@cache
def load_chart_flows() -> dict[str, ChartFlows]:
    text = files("rayhelm").joinpath("data/network/flows.yaml").read_text(encoding="utf-8")
    return {chart: ChartFlows.model_validate(flows) for chart, flows in yaml.safe_load(text).items()}
