"""All rendered objects match the schemas of KubeRay, Prometheus operator and Kubernetes, and pass `restricted`."""

import copy

import pytest
import yaml
from kubernetes_validate.utils import SchemaNotFoundError

from charts.kit import EXAMPLES, kinds, pods, ray_service, rendered
from charts.oracles import built_in, crd_validator
from charts.pod_security import violations
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.facts.versions import versions

OTHERS = {"RayService", "PodMonitor"}
ABOUT = yaml.safe_load((charts_dir() / "ray-service/Chart.yaml").read_text())
OLDEST = ABOUT["kubeVersion"].removeprefix(">=").removesuffix(".0-0")  # the chart uses nothing newer
ONLY_1_7_0 = {"everything"}  # uses what 1.6.2 does not know, which is refused at render
OPERATORS = [
    (example, kuberay)
    for example in EXAMPLES
    for kuberay in versions().kuberay.supported
    if kuberay != "1.6.2" or example not in ONLY_1_7_0
]


@pytest.mark.parametrize(("example", "kuberay"), OPERATORS)
def test_ray_service_matches_the_crd(example, kuberay):
    service = ray_service({"kuberay": {"version": kuberay}}, base=example)
    assert list(crd_errors(f"kuberay-{kuberay}/ray.io_rayservices.yaml", service)) == []


def test_crd_check_finds_a_field_of_another_version():
    service = ray_service({"workerGroups": {"gpu": {"priority": 1}}})
    assert not crd_errors("kuberay-1.7.0/ray.io_rayservices.yaml", service)
    assert crd_errors("kuberay-1.6.2/ray.io_rayservices.yaml", service)


def test_pod_monitor_matches_the_crd():
    monitors = [item for name in EXAMPLES for item in rendered(base=name) if item["kind"] == "PodMonitor"]
    assert len(monitors) >= 2
    for monitor in monitors:
        assert crd_errors("monitoring.coreos.com_podmonitor.yaml", monitor) == []


@pytest.mark.parametrize("kubernetes", list(dict.fromkeys([OLDEST, *versions().kubernetes.accepted])))
@pytest.mark.parametrize("example", EXAMPLES)
def test_pods_match_the_kubernetes_schemas(example, kubernetes):
    for pod in pods(rendered(base=example)):
        built_in(pod, kubernetes)


def test_schema_check_fails_for_an_unknown_kind():
    with pytest.raises(SchemaNotFoundError):
        built_in({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}}, "1.36")


@pytest.mark.parametrize("example", EXAMPLES)
def test_pods_pass_restricted(example):
    found = pods(rendered(base=example))
    assert len(found) >= 2
    for pod in found:
        assert violations(pod) == []
        assert all(part["securityContext"]["readOnlyRootFilesystem"] for part in pod["spec"]["containers"])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda pod: pod["spec"].update(hostNetwork=True), "hostNetwork"),
        (lambda pod: pod["spec"]["volumes"].append({"name": "h", "hostPath": {"path": "/"}}), "volume h: hostPath"),
        (lambda pod: pod["spec"]["containers"][0].pop("securityContext"), "ray-head: allowPrivilegeEscalation"),
        (lambda pod: pod["spec"].pop("securityContext"), "ray-head: seccompProfile"),
    ],
)
def test_restricted_check_finds_a_violation(change, found):
    pod = next(item for item in copy.deepcopy(pods(rendered())) if item["spec"]["containers"][0]["name"] == "ray-head")
    change(pod)
    assert found in violations(pod)


def test_examples_render_every_kind_of_the_chart():
    assert set().union(*(kinds(rendered(base=example)) for example in EXAMPLES)) == OTHERS | {
        "ConfigMap",
        "Job",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }


def crd_errors(crd, item):
    return [f"{error.json_path}: {error.message}" for error in crd_validator(crd).iter_errors(item)]
