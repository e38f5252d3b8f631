"""data/refused.yaml: every rule of the chart, who else refuses or breaks on what it refuses, and what shows it."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from packaging.version import Version
from pydantic import model_validator

from rayhelm.deploy.charts.rules import Rule, rules
from rayhelm.facts.closed import Closed

__all__ = ["CHART", "DATA", "Asked", "Case", "Change", "Entry", "cases", "not_in", "table"]

CHART = "ray-service"
DATA = Path(__file__).parent.parent / "data"
IN_A_CLUSTER = {"kubernetes", "kuberay"}
ELSEWHERE = {"ray", "vllm", "network"}


class Change(Closed):
    """One value of an object, put in or taken out."""

    of: str = "RayService"
    """Kind of the object; of several the first."""
    path: str
    """Its keys and numbers, with a slash before each."""
    value: Any = None
    """None takes it out."""

    def __call__(self, objects: list[dict[str, Any]]) -> None:
        node: Any = next(item for item in objects if item["kind"] == self.of)
        *way, last = self.path.split("/")[1:]
        for key in way:
            node = node[int(key) if isinstance(node, list) else key]
        if self.value is None:
            del node[last]
        else:
            node[last] = self.value


class Case(Closed):
    """Something that the chart refuses, and what becomes of it in a cluster; refused.yaml explains the fields."""

    values: dict[str, Any]
    release: str = ""
    """Where the release's name is what is wrong."""
    change: tuple[Change, ...] = ()
    applied: bool = False
    seen: Literal[
        "refused", "invalid", "stuck", "cut", "reported", "budget",
        "no-application", "no-endpoint", "no-service", "same-cluster",
    ]  # fmt: skip
    group: str = ""
    """Worker group of the pod that is reported, or `headgroup`."""
    says: str
    since: str = ""
    until: str = ""


class Asked(Closed):
    """Something that the chart refuses, and what Ray or vLLM say of it."""

    values: dict[str, Any]
    says: str


class Entry(Closed):
    """One rule."""

    whose: tuple[Literal["kubernetes", "kuberay", "ray", "vllm", "network", "ours"], ...]
    cases: dict[str, Case] = {}
    asked: dict[str, Asked] = {}
    unproven: str = ""

    @model_validator(mode="after")
    def _is_proven_or_says_why_not(self) -> "Entry":
        in_a_cluster, elsewhere = IN_A_CLUSTER.intersection(self.whose), ELSEWHERE.intersection(self.whose)
        if not self.whose or bool(self.cases) != bool(in_a_cluster):
            raise ValueError("a rule of KubeRay's or of Kubernetes' has cases, and no other has")
        if bool(self.asked or self.unproven) != bool(elsewhere):
            raise ValueError("a rule of Ray's, vLLM's or a network's is asked or unproven, and no other is")
        return self


@cache
def table() -> dict[str, Entry]:
    """Every entry by the rule's id."""
    text = (DATA / "refused.yaml").read_text()
    return {name: Entry.model_validate(entry) for name, entry in yaml.safe_load(text).items()}


def cases() -> Iterator[tuple[str, str, Case]]:
    """Rule, name and case, in the order of the table."""
    for rule, entry in table().items():
        for name, case in entry.cases.items():
            yield rule, name, case


def not_in(kuberay: str, rule: str, case: Case) -> str:
    """Why an operator of this version does not have the rule; empty where it has."""
    own: Rule = rules(CHART)[rule]
    since, until = case.since or own.since, case.until or own.until
    if since and Version(kuberay) < Version(since):
        return f"{rule}: KubeRay {kuberay} does not have this rule (since {since})"
    if until and Version(kuberay) > Version(until):
        return f"{rule}: KubeRay {kuberay} does not have this rule (until {until})"
    return ""
