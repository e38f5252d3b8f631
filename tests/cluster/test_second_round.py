"""The second round of attacks on a real API server: each attempt in its member's name, as a dry run.

The tenant is a release of chart tenant, with Pod Security, quotas and RBAC. The policies are those of the folder
`policies`, bound to its namespace only, because other tests run beside these."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from attacks.kit.second_round import EXISTING, OBJECT_ROWS, ROWS, ObjectRow, RequestRow, fill
from cluster.kit.cluster import Cluster, Object
from cluster.kit.helm import Helm
from cluster.kit.policies import TOLD
from cluster.kit.tenants import Person, Tenant, tenant
from cluster.kit.wait import eventually
from policies.kit.cases import FOLDER, NAMES, documents
from rayhelm.check.admission.policy import PLURALS
from rayhelm.deploy.charts.helm import template

METHODS = {"create": "POST", "patch": "PATCH", "apply": "PATCH", "replace": "PUT", "delete": "DELETE"}
FORMS = {"apply": "application/apply-patch+yaml"}
CLUSTER = "cluster-of-models"


@dataclass(frozen=True)
class Response:
    """What the API server answered."""

    status: int
    text: str

    @property
    def rules(self) -> set[str]:
        return set(TOLD.findall(self.message)) if self.status >= 400 else set()

    @property
    def message(self) -> str:
        try:
            return str(json.loads(self.text).get("message", ""))
        except ValueError:
            return self.text


@pytest.fixture(scope="module")
def team(cluster: Cluster) -> Iterator[Tenant]:
    """The tenant, its objects and the policies in force."""
    helm = Helm.of_major("4", cluster.place.kubeconfig)
    classes = [
        item for item in template("platform", "platform", "rayhelm-system", {}) if item["kind"] == "PriorityClass"
    ]
    with cluster.namespace() as releases, tenant(cluster, helm, releases) as found:
        policies = [item for name in NAMES for item in _bind(name, found.namespace)]
        cluster.apply(*classes)
        cluster.apply(*(fill(item, found.namespace) for item in EXISTING.values()), namespace=found.namespace)
        eventually(lambda: cluster.find("RoleBinding", CLUSTER, found.namespace), "the rights of the autoscaler")
        try:
            cluster.apply(*policies)
            first = {rule: row for row in reversed(OBJECT_ROWS) if not row.since for rule in row.rules}
            for rule, row in first.items():
                eventually(lambda row=row: _try(found, row).rules, f"rule {rule} being in force")
            yield found
        finally:
            for item in policies:
                cluster.delete(item["kind"], item["metadata"]["name"])


def _bind(policy: str, namespace: str) -> list[Object]:
    """A copy of a policy that applies in one namespace."""
    found, binding = documents(FOLDER / policy / "policy.yaml")
    found["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = f"{namespace}-{policy}"
    binding["spec"]["matchResources"] = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    }
    return [found, binding]


def _find_person(team: Tenant, role: str) -> Person:
    service_accounts = f"system:serviceaccount:{team.namespace}"
    return {
        "viewer": team.viewer,
        "editor": team.editor,
        "deployer": team.deployer,
        "neighbor": Person(team.cluster, f"system:serviceaccount:{team.releases}:others"),
        "autoscaler": Person(team.cluster, f"{service_accounts}:{CLUSTER}"),
        "worker": Person(team.cluster, f"{service_accounts}:default"),
        "operator": Person(team.cluster, "operator", ("system:masters",)),
        "controller": Person(team.cluster, "system:serviceaccount:kube-system:job-controller", ("system:masters",)),
    }[role]


def _try(team: Tenant, row: ObjectRow | RequestRow) -> Response:
    """Send the request of a row. Writes are dry runs, and an unknown field is an error."""
    if isinstance(row, RequestRow):
        method, path = fill(row.request, team.namespace).split()
        return _send(team, row.role, method, path, "application/json", {} if method != "GET" else None)
    base = EXISTING[row.of] if row.verb != "create" else row.item
    item = fill(row.item, team.namespace)
    group = f"/apis/{item['apiVersion']}" if "/" in item["apiVersion"] else f"/api/{item['apiVersion']}"
    plural = {**PLURALS, **OTHER_PLURALS}[item["kind"]]
    path = f"{group}/namespaces/{team.namespace}/{plural}"
    path += "" if row.verb == "create" else f"/{base['metadata']['name']}"
    path += "?dryRun=All" + ("" if row.verb == "delete" else "&fieldValidation=Strict")
    path += "&fieldManager=attacks&force=true" if row.verb == "apply" else ""
    body = fill(row.changes, team.namespace) if row.verb == "patch" else None if row.verb == "delete" else item
    form = FORMS.get(row.verb, "application/json")
    if row.verb == "patch":
        # Kinds of KubeRay take no strategic merge patch.
        form = f"application/{'merge' if group.startswith('/apis/ray.io') else 'strategic-merge'}-patch+json"
    return _send(team, row.role, METHODS[row.verb], path, form, body)


OTHER_PLURALS = {
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ScrapeConfig": "scrapeconfigs",
    "Gateway": "gateways",
}


def _send(team: Tenant, role: str, method: str, path: str, form: str, body: Object | None) -> Response:
    person = _find_person(team, role)
    headers = {"Impersonate-User": person.user, "Content-Type": form}
    if person.groups:
        headers["Impersonate-Group"] = person.groups[0]
    api = team.cluster.api
    answer = api.session.request(
        method, f"{api.url}{path}", data=None if body is None else json.dumps(body), headers=headers
    )
    return Response(answer.status_code, answer.text)


def _is_older(version: str, than: str) -> bool:
    return [int(part) for part in version.split(".")] < [int(part) for part in than.split(".")]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_attempt_of_the_second_round_is_answered_as_its_row_says(team: Tenant, row: ObjectRow | RequestRow) -> None:
    answer = _try(team, row)
    if row.since and _is_older(team.cluster.place.kuberay, row.since):
        assert answer.status == 400, answer
        assert "unknown field" in answer.message, answer
    elif row.by == "nothing":
        assert answer.status < 300, answer
    elif row.by == "rule":
        # Of several policies that refuse it, the API server may name one.
        assert answer.rules, answer
        assert answer.rules <= row.rules, answer
    elif row.by == "RBAC":
        assert answer.status == 403, answer
        assert "cannot" in answer.message, answer
    else:
        assert answer.status in (400, 403, 422), answer
        words = {"quota": "exceeded quota", "Pod Security": "violates PodSecurity", "API server": ""}[row.by]
        assert words in answer.message, answer
        assert row.text in answer.message, answer
