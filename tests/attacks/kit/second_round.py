"""The second and third round: attempts as rows of data, each in one member's name, with what refuses it."""

import copy
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from attacks.kit.objects import lay_over
from policies.kit.cases import documents

__all__ = ["EXISTING", "OBJECT_ROWS", "REQUEST_ROWS", "ObjectRow", "RequestRow", "fill"]

Object = dict[str, Any]

FOLDER = Path(__file__).parents[1] / "second_round"
EXISTING: dict[str, Object] = {item["metadata"]["name"]: item for item in documents(FOLDER / "existing.yaml")}
"""Objects that are in the namespace before the attempts, by name."""
NEW: dict[str, Object] = {item["metadata"]["name"]: item for item in documents(FOLDER / "new.yaml")}
"""Objects that the charts could have rendered, by name. A row lays its changes over one of them."""

Role = Literal["viewer", "editor", "deployer", "neighbor", "autoscaler", "worker", "operator", "controller"]
Verb = Literal["create", "patch", "apply", "replace", "delete"]
Guard = Literal["rule", "RBAC", "quota", "Pod Security", "API server", "nothing"]


class _Row(BaseModel):
    """One attempt."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    role: Role
    """`neighbor`: the deployer of another tenant. `autoscaler`: the service account of Ray's autoscaler. `worker`: that
    of a Ray pod. `operator`: KubeRay, with what an editor has it create. `controller`: Kubernetes, with what a Job or
    a pod of a member has it create."""
    by: Guard
    """What refuses it. `nothing`: it is accepted, and `text` says why that is so."""
    text: str = ""
    """The rules, the name of the quota, a part of the message, or the reason."""
    since: str = ""
    """Version of KubeRay that has the field; the API server refuses an unknown one."""
    first: Literal["refused", "accepted"] = "refused"
    """The answer before the rules of its round. Third round: computed offline."""

    def __str__(self) -> str:
        return f"{self.role}-{self.name}"

    @property
    def rules(self) -> set[str]:
        """Rules that it breaks."""
        return set(self.text.split(", ")) if self.by == "rule" else set()


class ObjectRow(_Row):
    """An object of `new.yaml` or `existing.yaml` that is sent with changes."""

    of: str
    verb: Verb = "create"
    over: Object = {}
    pod: Object = {}
    """Laid over the spec of its pod, of its head for Ray."""
    pod_metadata: Object = {}
    container: Object = {}
    """Laid over the first container of the pod."""

    @property
    def before(self) -> Object | None:
        """The object that is there already; None if the attempt creates it."""
        return None if self.verb == "create" else EXISTING[self.of]

    @property
    def changes(self) -> Object:
        """The body of a patch."""
        return copy.deepcopy(self.over)

    @property
    def item(self) -> Object:
        """The object as it would be."""
        base = copy.deepcopy(EXISTING[self.of] if self.verb != "create" else NEW[self.of])
        if self.verb == "create":
            base["metadata"]["name"] = self.name
        found: Object = _drop_nulls(lay_over(base, self.over))
        if self.over.get("metadata", {}).get("generateName"):
            del found["metadata"]["name"]
        if self.pod or self.container or self.pod_metadata:
            template = _find_template(found)
            lay_over(template.setdefault("spec", {}), self.pod)
            lay_over(template["spec"]["containers"][0], self.container)
            lay_over(template.setdefault("metadata", {}), self.pod_metadata)
        return found


class RequestRow(_Row):
    """A request that RBAC refuses before the API server reads its body."""

    request: str
    """`<method> <path>`"""


def _find_template(item: Object) -> Object:
    spec = item["spec"]
    if item["kind"] == "Pod":
        return item
    if item["kind"] == "Job":
        return dict.__getitem__(spec, "template")
    cluster = spec["rayClusterConfig"] if item["kind"] == "RayService" else spec
    return dict.__getitem__(cluster["headGroupSpec"], "template")


def _drop_nulls(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _drop_nulls(value) for key, value in item.items() if value is not None}
    return item


def fill(item: Any, namespace: str) -> Any:
    """Put the namespace where a row has `$NS`."""
    if isinstance(item, dict):
        return {key: fill(value, namespace) for key, value in item.items()}
    if isinstance(item, list):
        return [fill(value, namespace) for value in item]
    return item.replace("$NS", namespace) if isinstance(item, str) else item


def _read() -> list[ObjectRow | RequestRow]:
    found: list[ObjectRow | RequestRow] = []
    for file in sorted(FOLDER.glob("tried-*.yaml")):
        (rows,) = documents(file)
        for name, row in rows.items():
            kind = RequestRow if "request" in row else ObjectRow
            found.append(kind.model_validate({"name": name, **row}))
    return found


ROWS = _read()
OBJECT_ROWS = [row for row in ROWS if isinstance(row, ObjectRow)]
REQUEST_ROWS = [row for row in ROWS if isinstance(row, RequestRow)]
