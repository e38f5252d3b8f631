"""The policies of the folder `policies` on the API server, and what it answers to dry runs under them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cluster.kit.cluster import Cluster, Object
from cluster.kit.wait import eventually
from policies.kit.cases import CASES, FOLDER, NAMES, Case
from policies.kit.cases import asked as violations_of
from rayhelm.check.admission.policy import PLURALS

__all__ = ["MEMBER", "MEMBER_RIGHTS", "Answer", "Asked", "in_force"]

MEMBER = "member@tenant"
"""A user who may write every kind that a policy judges, but no namespace and no status."""
_RIGHTS: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "tests-member"},
    "rules": [
        {"apiGroups": ["*"], "resources": sorted({*PLURALS.values()} - {"namespaces"}), "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["*"]},
    ],
}
_BINDING: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "tests-member"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tests-member"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": MEMBER}],
}
_DRY: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
MEMBER_RIGHTS = (_RIGHTS, _BINDING)
TOLD = re.compile(r"denied request: ([a-z][a-z0-9-]*): ")


class Answer(NamedTuple):
    """What the API server said to one request."""

    status: int
    text: str
    warnings: str

    @property
    def rules(self) -> set[str]:
        """Of ours, by which it was refused."""
        return set(TOLD.findall(self.message)) if self.status >= 400 else set()

    @property
    def message(self) -> str:
        return str(json.loads(self.text).get("message", ""))

    def __str__(self) -> str:
        return f"{self.status}: {self.text[:2000]}"


class Asked(NamedTuple):
    """Dry runs: every admission plugin has its say, and nothing is kept."""

    cluster: Cluster
    namespace: str
    """For objects that name none."""

    def about(self, one: Case) -> Answer:
        """A case, made new or as a change of what is there."""
        return self.replace(one.item) if one.before else self.create(one.item)

    def create(self, item: Object) -> Answer:
        return self._send("POST", self._path(item), item)

    def replace(self, item: Object) -> Answer:
        """In place of the object of its name that is there."""
        return self._send("PUT", self._path(item, item["metadata"]["name"]), item)

    def remove(self, item: Object) -> Answer:
        """Deletion of the object of its name that is there."""
        return self._send("DELETE", self._path(item, item["metadata"]["name"]), _DRY)

    def there(self, item: Object) -> Object:
        """The object of its name as it is there."""
        found: Object = json.loads(self._send("GET", self._path(item, item["metadata"]["name"])).text)
        return found

    def _path(self, item: Object, name: str = "") -> str:
        group = f"/apis/{item['apiVersion']}" if "/" in item["apiVersion"] else f"/api/{item['apiVersion']}"
        namespace = item["metadata"].get("namespace", self.namespace)
        within = "" if item["kind"] == "Namespace" else f"/namespaces/{namespace}"
        return f"{group}{within}/{PLURALS[item['kind']]}{name and '/'}{name}"

    def _send(self, method: str, path: str, item: Object | None = None) -> Answer:
        """Field names are checked too: a case with a misspelt field would prove nothing."""
        options = "" if item is None else "?dryRun=All"
        if method in ("POST", "PUT"):
            options += "&fieldValidation=Strict"
        # Rules for members of a tenant do not judge an administrator, and members may not change a namespace.
        member = {} if path.startswith("/api/v1/namespaces") and path.count("/") < 5 else {"Impersonate-User": MEMBER}
        answer = self.cluster.api.session.request(
            method, f"{self.cluster.api.url}{path}{options}", data=json.dumps(item) if item else None,
            headers={"Content-Type": "application/json", **member},
        )  # fmt: skip
        return Answer(answer.status_code, answer.text, answer.headers.get("Warning", ""))


@contextmanager
def in_force(cluster: Cluster, namespace: str) -> Iterator[Asked]:
    """All of them, until the block ends: as the README says to apply them. What their cases were before is there."""
    cluster.apply(*MEMBER_RIGHTS)
    files = [str(FOLDER / name / "policy.yaml") for name in NAMES]
    for file in files:
        cluster.kubectl("apply", "--server-side", "-f", file)
    asked = Asked(cluster, namespace)
    try:
        for name in NAMES:
            _waits_for(asked, name)
        yield asked
    finally:
        for file in files:
            cluster.kubectl("delete", "--ignore-not-found", "-f", file)
        # After the policies: the last questions are asked in this name too.
        for name in NAMES:
            eventually(lambda name=name: not asked.about(_bad(name)).rules, f"policy {name} being gone")
        for item in MEMBER_RIGHTS:
            cluster.delete(item["kind"], item["metadata"]["name"])


def _waits_for(asked: Asked, name: str) -> None:
    """A policy is in force some time after it was applied."""
    eventually(lambda: asked.about(_bad(name)).rules, f"policy {name} being in force")


def _bad(name: str) -> Case:
    """A bad case without a namespace of its own where there is one, which other policies let pass."""
    bad = [one for one in CASES if one.policy == name and not one.good]
    bad = [one for one in bad if "namespace" not in one.item["metadata"]] or bad
    return min(bad, key=lambda one: len({each.policy for each in violations_of(one.item, one.namespace, one.before)}))
