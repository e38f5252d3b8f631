"""Cases of each policy: objects that pass, and objects that are refused, with the rules that they break."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rayhelm.check.admission.evaluate import PolicyViolation, evaluate_policies, index_namespaces
from rayhelm.check.admission.policy import AdmissionPolicy, read_policies
from rayhelm.deploy.charts.helm import Loader, charts_dir

__all__ = [
    "BREAKS",
    "CASES",
    "FOLDER",
    "NAMES",
    "Case",
    "asked",
    "case",
    "documents",
    "namespace",
    "policies",
    "previous_objects",
    "rules_of",
]

Object = dict[str, Any]

FOLDER = charts_dir().parent / "policies"
NAMES = sorted(file.parent.name for file in FOLDER.glob("*/policy.yaml"))
BREAKS = "rayhelm.dev/breaks"


@dataclass(frozen=True)
class Case:
    """One object of good.yaml or bad.yaml."""

    policy: str
    good: bool
    item: Object
    namespace: Object
    """Namespace that it names, from the same file; else one without annotations."""
    before: Object | None = None
    """Its previous version, for a policy that judges changes."""

    def __str__(self) -> str:
        return f"{self.policy}-{'good' if self.good else 'bad'}-{self.item['kind']}-{self.item['metadata']['name']}"

    @property
    def rules(self) -> set[str]:
        """Rules that it breaks."""
        return rules_of(self.item)


def rules_of(item: Object) -> set[str]:
    """Rules in the annotation of an object."""
    text = item["metadata"].get("annotations", {}).get(BREAKS, "")
    return {rule.strip() for rule in text.split(",") if rule}


def namespace(name: str = "anywhere", **metadata: Object) -> Object:
    """A namespace with a Pod Security level, if `metadata` has no other."""
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    labels = {"kubernetes.io/metadata.name": name, **level, **metadata.get("labels", {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata, "labels": labels}}


def documents(file: Path) -> list[Object]:
    return [item for item in yaml.load_all(file.read_text(), Loader=Loader) if item]


@cache
def policies() -> tuple[AdmissionPolicy, ...]:
    """Read all policies from their folders."""
    return tuple(read_policies(item for name in NAMES for item in documents(FOLDER / name / "policy.yaml")))


def asked(item: Object, within: Object | None = None, old: Object | None = None) -> list[PolicyViolation]:
    """Violations that all policies report."""
    return evaluate_policies(policies(), item, within or namespace(), old)


def previous_objects(name: str) -> list[Object]:
    """Previous versions of a policy's cases, for a policy that judges changes."""
    file = FOLDER / name / "previous.yaml"
    return documents(file) if file.exists() else []


def _cases() -> Iterator[Case]:
    for name in NAMES:
        before = {item["metadata"]["name"]: item for item in previous_objects(name)}
        for good in (True, False):
            items = documents(FOLDER / name / f"{'good' if good else 'bad'}.yaml")
            known = {each: namespace(each, **_noted(found)) for each, found in index_namespaces(items).items()}
            for item in items:
                about = item["metadata"]
                if item["kind"] != "Namespace" or about["name"] in before:
                    within = known.get(about.get("namespace", ""), namespace())
                    yield Case(name, good, item, within, before.get(about["name"]))


def _noted(item: Any) -> dict[str, Object]:
    return {key: item["metadata"][key] for key in ("labels", "annotations") if key in item["metadata"]}


CASES = list(_cases())


def case(policy: str, name: str, kind: str = "RayService", *, good: bool = False) -> Object:
    """A copy of one object of the cases."""
    wanted = (policy, good, name, kind)
    found = (
        each for each in CASES if (each.policy, each.good, each.item["metadata"]["name"], each.item["kind"]) == wanted
    )
    return copy.deepcopy(next(found).item)
