"""Tenants for the tests, and people who try things in their names."""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from charts.kit import example, over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from cluster.kit.wait import eventually

__all__ = ["Person", "Tenant", "tenant"]


@dataclass(frozen=True)
class Person:
    """A user whom the API server knows by name and groups; the administrator impersonates them."""

    cluster: Cluster
    user: str
    groups: tuple[str, ...] = ()

    def may(self, namespace: str, verb: str, resource: str, group: str = "") -> bool:
        """What `kubectl auth can-i` says: `resource` may have a subresource, `pods/exec`."""
        kind, _, subresource = resource.partition("/")
        asked = {"namespace": namespace, "verb": verb, "group": group, "resource": kind, "subresource": subresource}
        about = {"user": self.user, "groups": list(self.groups), "resourceAttributes": asked}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": about}
        url = f"{self.cluster.api.url}/apis/authorization.k8s.io/v1/subjectaccessreviews"
        answer = self.cluster.api.session.post(url, json=review)
        assert answer.status_code == 201, answer.text
        return bool(answer.json()["status"]["allowed"])

    def tries(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, str]:
        """A request in their name: its status, and what the API server says of it."""
        headers = [("Impersonate-User", self.user), *(("Impersonate-Group", name) for name in self.groups)]
        # requests takes one header of a name; the API server takes groups from several.
        assert len(self.groups) <= 1
        form = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = self.cluster.api.session.request(
            method, f"{self.cluster.api.url}{path}", data=json.dumps(body) if body else None,
            headers={**dict(headers), "Content-Type": form},
        )  # fmt: skip
        return answer.status_code, answer.text

    @property
    def flags(self) -> list[str]:
        """Of Helm, to act as them."""
        return [f"--kube-as-user={self.user}", *(f"--kube-as-group={name}" for name in self.groups)]


@dataclass(frozen=True)
class Tenant:
    """A release of the chart, and the namespace that it isolates."""

    cluster: Cluster
    helm: Helm
    name: str
    releases: str
    """Namespace of the release."""

    @property
    def namespace(self) -> str:
        return self.name

    @property
    def viewer(self) -> Person:
        return Person(self.cluster, f"vera@{self.name}", (f"{self.name}-viewers",))

    @property
    def editor(self) -> Person:
        return Person(self.cluster, f"ed@{self.name}", (f"{self.name}-editors",))

    @property
    def deployer(self) -> Person:
        """A pipeline's service account."""
        return Person(self.cluster, f"system:serviceaccount:{self.releases}:{self.name}")

    def install(self, overlay: Mapping[str, Any] | None = None, *options: str) -> str:
        return self.helm.install("tenant", self.name, self.releases, self.values(overlay), *options)

    def wait_until_unchanged(self) -> None:
        """Waits until its quotas and rights are in force: what is asked before is refused, or judged by former ones.

        A quota is in force when the controller has counted each of its resources."""

        def quotas_are_counted() -> bool:
            quotas = self.cluster.all("ResourceQuota", self.namespace)
            return all(map(_is_counted, quotas))

        eventually(quotas_are_counted, f"the quotas of {self.name} being counted")
        for person in (self.viewer, self.editor, self.deployer):
            eventually(lambda person=person: person.may(self.namespace, "list", "pods"), f"the rights of {person.user}")

    def values(self, overlay: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The smallest values, with a user bound to each role."""
        bound = {
            "viewers": {"groups": [f"{self.name}-viewers"]},
            "editors": {"groups": [f"{self.name}-editors"]},
            "deployers": {"serviceAccounts": [f"{self.releases}/{self.name}"]},
        }
        return dict(over(over(example("tenant/minimal"), {"access": bound}), dict(overlay or {})))


def _is_counted(quota: Object) -> bool:
    status, hard = quota.get("status", {}), quota["spec"]["hard"]
    return bool(status.get("hard") == hard and set(status.get("used", {})) == set(hard))


@contextmanager
def tenant(
    cluster: Cluster, helm: Helm, releases: str, overlay: Mapping[str, Any] | None = None, *, name: str = ""
) -> Iterator[Tenant]:
    """As the README says to install it, in a namespace of its own; that one goes with the block."""
    name = name or f"team-{uuid.uuid4().hex[:8]}"
    with cluster.namespace({}, name=name):
        made = Tenant(cluster, helm, name, releases)
        made.install(overlay, "--take-ownership")
        made.wait_until_unchanged()
        yield made
