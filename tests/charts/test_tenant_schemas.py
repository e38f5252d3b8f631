"""Everything that the chart tenant renders is what Kubernetes and the operators take, with either Helm."""

import json
from typing import Any

import jsonschema
import pytest
import yaml

from charts.kit import HERE, VALUES, over, rendered
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.facts.versions import versions

EXAMPLES = sorted(f"tenant/{path.stem}" for path in (VALUES / "tenant").glob("*.yaml"))
ABOUT = yaml.safe_load((charts_dir() / "tenant/Chart.yaml").read_text())
OLDEST = ABOUT["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
KUBERNETES = list(dict.fromkeys([OLDEST, *versions().kubernetes.accepted]))
SCHEMAS = {"ExternalSecret": "external-secrets.io_externalsecret_v1", "LocalQueue": "kueue.x-k8s.io_localqueue_v1beta2"}
Object = dict[str, Any]


def objects(example: str, helm: str = "4", overlay: Object | None = None) -> list[Object]:
    return rendered(overlay, chart="tenant", base=example, release="research", namespace="tenants", helm=helm)


def of_others(item: Object) -> list[str]:
    """What the schema of an operator's own kind says against it."""
    schema = json.loads((HERE / f"schemas/{SCHEMAS[item['kind']]}.json").read_text())
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(item)]


def test_secrets_and_queues_match_the_crds() -> None:
    found = [item for item in objects("tenant/everything") if item["kind"] in SCHEMAS]
    assert len(found) == 4
    for item in found:
        assert of_others(item) == []


def test_schema_refuses_an_unknown_field() -> None:
    secret = next(item for item in objects("tenant/everything") if item["kind"] == "ExternalSecret")
    assert of_others(over(secret, {"spec": {"target": {"kind": "Secret"}}}))
    assert of_others(over(secret, {"spec": {"secretStoreRef": {"kind": "Vault"}}}))


def test_local_queues_use_the_given_api_version() -> None:
    for version in ("v1beta1", "v1beta2"):
        queues = [
            item
            for item in objects("tenant/everything", overlay={"kueue": {"apiVersion": version}})
            if item["kind"] == "LocalQueue"
        ]
        assert [item["apiVersion"] for item in queues] == [f"kueue.x-k8s.io/{version}"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_objects_are_unique_and_in_the_namespace(example: str) -> None:
    found = objects(example)
    names = [(item["kind"], item["metadata"]["name"]) for item in found]
    assert len(set(names)) == len(names)
    # The policy of the tenant's Redis is where its pods are.
    own = [item for item in found if item["kind"] != "Namespace" and not item["metadata"]["name"].endswith("-redis")]
    inside = {item["metadata"]["namespace"] for item in own}
    assert len(inside) == 1
    for item in found:
        if item["kind"] == "Namespace":
            assert inside == {item["metadata"]["name"]}


def test_examples_render_every_kind_of_the_chart() -> None:
    assert {item["kind"] for example in EXAMPLES for item in objects(example)} == {
        *SCHEMAS,
        "LimitRange",
        "Namespace",
        "NetworkPolicy",
        "ResourceQuota",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    }
