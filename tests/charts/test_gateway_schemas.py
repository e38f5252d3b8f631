"""Objects of chart gateway against the schemas of Kubernetes and the operators, with both Helm versions."""

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import yaml

from charts.kit import HERE, VALUES, kinds, only, rendered
from charts.oracles import validator_of
from charts.pod_security import violations
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.errors import MissingError
from rayhelm.facts.versions import versions
from testbed.tools.crds import crd_files

EXAMPLES = sorted(f"gateway/{path.stem}" for path in (VALUES / "gateway").glob("*.yaml"))
ABOUT = yaml.safe_load((charts_dir() / "gateway/Chart.yaml").read_text())
OLDEST = ABOUT["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
KUBERNETES = list(dict.fromkeys([OLDEST, *versions().kubernetes.accepted]))
CRDS = {
    "HTTPRoute": ("gateway-api", "gateway.networking.k8s.io_httproutes.yaml", "v1"),
    "ScaledObject": ("keda", "keda.sh_scaledobjects.yaml", "v1alpha1"),
    "PodMonitor": ("prometheus-operator", "monitoring.coreos.com_podmonitors.yaml", "v1"),
}
Object = dict[str, Any]


def objects(example: str, helm: str = "4", overlay: Object | None = None) -> list[Object]:
    return rendered(overlay, chart="gateway", base=example, release="main-gateway", helm=helm)


def complaints(item: Object) -> list[str]:
    """Return the problems that a CRD finds in an object."""
    bundle, name, version = CRDS[item["kind"]]
    try:
        (file,) = [path for path in crd_files(bundle) if path.name == name]
    except MissingError as error:
        pytest.skip(str(error))
    return [f"{error.json_path}: {error.message}" for error in validator_of(file, version).iter_errors(item)]


def pod(item: Object) -> Object:
    """Return the pod of a Deployment."""
    template = item["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", **template["metadata"]},
        "spec": template["spec"],
    }


def test_external_secrets_match_the_crd() -> None:
    schema = json.loads((HERE / "schemas/external-secrets.io_externalsecret_v1.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    found = [item for item in objects("gateway/everything") if item["kind"] == "ExternalSecret"]
    assert {item["metadata"]["name"] for item in found} == {"acme-keys", "gateway-remote-us"}
    for item in found:
        assert not list(validator.iter_errors(item))
        assert list(validator.iter_errors({**item, "spec": {**item["spec"], "surprise": 1}}))


@pytest.mark.parametrize("kind", CRDS)
def test_objects_match_the_crds(kind: str) -> None:
    (item,) = [item for example in EXAMPLES for item in objects(example) if item["kind"] == kind]
    assert complaints(item) == []
    item["spec"]["surprise"] = 1
    assert complaints(item) != []


@pytest.mark.parametrize("example", EXAMPLES)
def test_pod_passes_restricted_and_has_a_read_only_root(example: str) -> None:
    found = pod(only(objects(example), "Deployment"))
    assert violations(found) == []
    parts = (*found["spec"]["initContainers"], *found["spec"]["containers"])
    assert all(part["securityContext"]["readOnlyRootFilesystem"] for part in parts)
    mounts = [mount for part in parts for mount in part.get("volumeMounts", [])]
    writable = {mount["name"] for mount in mounts if not mount.get("readOnly")}
    assert writable == {"sockets"} | ({"token-keys"} if example == "gateway/everything" else set())
    assert found["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda spec: spec["containers"][0].pop("securityContext"), "haproxy: allowPrivilegeEscalation"),
        (lambda spec: spec["initContainers"][0]["securityContext"].pop("capabilities"), "check: capabilities"),
        (lambda spec: spec["volumes"].append({"name": "h", "hostPath": {"path": "/"}}), "volume h: hostPath"),
    ],
)
def test_restricted_check_detects_violations(change: Callable[[Object], None], complaint: str) -> None:
    found = copy.deepcopy(pod(only(objects("gateway/minimal"), "Deployment")))
    change(found["spec"])
    assert any(item.startswith(complaint) for item in violations(found))


def test_examples_render_every_kind() -> None:
    assert set().union(*(kinds(objects(example)) for example in EXAMPLES)) == set(CRDS) | {
        "ConfigMap",
        "Deployment",
        "ExternalSecret",
        "HorizontalPodAutoscaler",
        "Ingress",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }
