"""Checks of a rehearsal, with a program in place of kubectl."""

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from rayhelm.deploy.advice import how_to_get_cluster
from rayhelm.errors import Fix, FleetError, MissingError, Problem
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.run.rehearsal.capacity import Capacity, can_schedule, list_free_capacity, list_pod_requests
from rayhelm.run.rehearsal.checks import ClusterFacts, inspect_cluster, refuse_obstacles, refuse_other_rehearsal
from rayhelm.run.rehearsal.record import RehearsalRecord

PROGRAM = """\
#!{python}
import json, sys
words = [word for word in sys.argv[1:] if not word.startswith(("--kubeconfig", "--cache-dir", "--context"))]
for begin, answer in json.load(open({answers!r})):
    if words[:len(begin)] == begin:
        if isinstance(answer, str) and answer.startswith("error"):
            sys.exit(answer)
        sys.stdout.write(answer if isinstance(answer, str) else json.dumps(answer))
        sys.exit(0)
sys.exit(f"error: no answer for {{words}}")
"""
V1: dict[str, Any] = {"authOptions": {}}
NODE = {
    "metadata": {"name": "node"},
    "spec": {},
    "status": {"allocatable": {"memory": "16Gi", "cpu": "2"}, "capacity": {"memory": "16Gi"}},
}
OPERATOR = {"metadata": {"name": "kuberay-operator", "namespace": "kuberay"}, "status": {"availableReplicas": 1}}
SLICE = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]}
FOUND = ClusterFacts(server="https://there", context="trial", kuberay="1.6.2", api_servers=(), nodes=(NODE,))
Answers = Callable[..., Kubectl]


def crd(spec: dict[str, Any], cluster: dict[str, Any]) -> dict[str, Any]:
    properties = {**spec, "rayClusterConfig": {"properties": cluster}}
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": properties}}}}
    return {"spec": {"versions": [{"name": "v1", "schema": schema}]}}


def usual() -> dict[str, Any]:
    """A cluster on which a rehearsal can start."""
    config = {"current-context": "trial", "clusters": [{"cluster": {"server": "https://there"}}]}
    return {
        "config view": config,
        "get --raw=/version": {},
        "get crd": crd({}, V1),
        "get deployments": {"items": [OPERATOR]},
        "get endpointslices": {"items": [SLICE]},
        "get nodes": {"items": [NODE]},
        "get rayservices.ray.io": {"items": []},
        "get namespace": "",
        "get configmap": "",
        "get --filename=-": "",
        "get pods": {"items": []},
    }


@pytest.fixture
def kubectl(tmp_path: Path) -> Answers:
    def make(**change: Any) -> Kubectl:
        answers = usual() | {name.replace("_", " "): answer for name, answer in change.items()}
        file, program = tmp_path / "answers.json", tmp_path / "kubectl"
        file.write_text(json.dumps([[begin.split(), answer] for begin, answer in answers.items()]))
        program.write_text(PROGRAM.format(python=sys.executable, answers=str(file)))
        program.chmod(0o755)
        return Kubectl(program, None)

    return make


def missing(kubectl: Kubectl) -> MissingError:
    with pytest.raises(MissingError) as caught:
        inspect_cluster(kubectl)
    return caught.value


def obstacles(
    kubectl: Kubectl, found: ClusterFacts = FOUND, objects: tuple[dict[str, Any], ...] = (), **options: bool
) -> tuple[Problem, ...]:
    with pytest.raises(FleetError) as caught:
        refuse_obstacles(kubectl, found, [], [objects], **options)  # type: ignore[arg-type]
    return caught.value.problems


def pod(memory: str, **more: Any) -> dict[str, Any]:
    return {"containers": [{"resources": {"requests": {"memory": memory, "cpu": "200m"}}}], **more}


def service(memory: str, workers: int = 1) -> dict[str, Any]:
    group = {"minReplicas": workers, "template": {"spec": pod(memory)}}
    cluster = {"headGroupSpec": {"template": {"spec": pod("1Gi")}}, "workerGroupSpecs": [group]}
    return {
        "kind": "RayService",
        "metadata": {"name": "one", "namespace": "models"},
        "spec": {"rayClusterConfig": cluster},
    }


def test_inspect_cluster_returns_server_context_version_and_addresses(kubectl: Answers) -> None:
    found = inspect_cluster(kubectl())
    assert (found.server, found.context, found.kuberay) == ("https://there", "trial", "1.6.2")
    assert found.api_servers == ("10.0.0.1/32",)
    assert found.operator_namespace == "kuberay"


def test_inspect_cluster_finds_the_version_by_fields_of_the_crd(kubectl: Answers) -> None:
    assert inspect_cluster(kubectl(get_crd=crd({"suspend": {}}, V1))).kuberay == "1.7.0"
    assert "older than 1.6.2" in missing(kubectl(get_crd=crd({}, {}))).what


def test_unreachable_cluster_is_named_in_the_error(tmp_path: Path, kubectl: Answers) -> None:
    silent = usual()["config view"]
    error = missing(kubectl(**{"config view": silent, "get --raw=/version": "error: one\ndial tcp: refused"}))
    assert error.what == "https://there (context trial) does not answer: dial tcp: refused"
    assert "kubectl --context trial version" in error.how
    assert "make node" in error.how
    assert [fix.command for fix in error.fixes] == ["kubectl --context trial version", "make node"]


def test_missing_kuberay_has_its_chart_as_fix(kubectl: Answers) -> None:
    error = missing(kubectl(get_crd=""))
    assert "CRD rayservices.ray.io does not exist" in error.what
    assert "helm install kuberay-operator" in error.how


@pytest.mark.parametrize("items", [[], [{**OPERATOR, "status": {}}]])
def test_operator_that_does_not_run_is_an_error(kubectl: Answers, items: list[Any]) -> None:
    assert "operator does not run" in missing(kubectl(get_deployments={"items": items})).what


def test_usable_cluster_is_accepted(kubectl: Answers) -> None:
    refuse_obstacles(kubectl(), FOUND, [], [[service("8Gi")]])


def test_cluster_with_gpus_is_refused_without_the_option(kubectl: Answers) -> None:
    node = {**NODE, "status": {**NODE["status"], "capacity": {"nvidia.com/gpu": "8"}}}  # type: ignore[dict-item]
    found = ClusterFacts(server="", context="", kuberay="1.6.2", api_servers=(), nodes=(node,))
    (problem,) = obstacles(kubectl(), found)
    assert "nvidia.com/gpu on node node" in problem.message
    assert problem.fix == how_to_get_cluster()
    assert [fix.command for fix in problem.alternatives] == ["rayhelm rehearse ... --with-gpus"]
    refuse_obstacles(kubectl(), found, [], [], with_gpus=True)


def test_other_rayservices_are_refused_without_the_option(kubectl: Answers) -> None:
    theirs = kubectl(**{"get rayservices.ray.io": {"items": [{"metadata": {"namespace": "a", "name": "b"}}]}})
    (problem,) = obstacles(theirs)
    assert problem.message == "the cluster has other RayServices: a/b"
    assert [fix.command for fix in problem.alternatives] == ["rayhelm rehearse ... --allow-existing"]
    refuse_obstacles(theirs, FOUND, [], [], allow_existing=True)


def test_existing_names_are_always_refused(kubectl: Answers) -> None:
    theirs = kubectl(get_namespace="namespace/models", **{"get --filename=-": "priorityclass.x/workers"})
    objects = (
        {"kind": "Namespace", "metadata": {"name": "models"}},
        {"kind": "PriorityClass", "metadata": {"name": "workers"}},
    )
    first, second = obstacles(theirs, objects=objects, with_gpus=True, allow_existing=True)
    assert first.message.startswith("the namespace models already exists on the cluster")
    assert [fix.command for fix in first.alternatives] == ["kubectl delete namespace models"]
    assert second.message.startswith("priorityclass.x/workers already exists on the cluster")


def test_all_problems_are_reported_together(kubectl: Answers) -> None:
    node = {**NODE, "status": {"capacity": {"amd.com/gpu": "1"}}}
    found = ClusterFacts(server="", context="", kuberay="1.6.2", api_servers=(), nodes=(node,))
    theirs = kubectl(**{"get rayservices.ray.io": {"items": [{"metadata": {"namespace": "a", "name": "b"}}]}})
    assert len(obstacles(theirs, found, (service("1Gi"),))) == 3


def test_small_cluster_is_refused_with_requests_and_free_capacity(kubectl: Answers) -> None:
    taken = {"spec": pod("10Gi", nodeName="node"), "status": {"phase": "Running"}}
    (problem,) = obstacles(kubectl(get_pods={"items": [taken]}), objects=(service("8Gi"),))
    assert "request 9.0 GiB and 0.4 CPUs in 2 pods; the largest requests 8.0 GiB" in problem.message
    assert "have 6.0 GiB and 1.8 CPUs free" in problem.message
    assert "--service NAME" in str(problem.fix)


def test_replaced_service_needs_its_capacity_twice(kubectl: Answers) -> None:
    refuse_obstacles(kubectl(), FOUND, [], [[service("7Gi")]])
    with pytest.raises(FleetError, match="one service with two clusters"):
        refuse_obstacles(kubectl(), FOUND, [], [[service("8Gi")]], twice=[service("8Gi")])


def test_free_capacity_ignores_ended_pods_and_tainted_nodes() -> None:
    over = {"spec": pod("10Gi", nodeName="node"), "status": {"phase": "Succeeded"}}
    tainted = {**NODE, "spec": {"taints": [{"effect": "NoSchedule"}]}}
    assert list_free_capacity([NODE, tainted], [over]) == [Capacity(16 * 2**30, 2)]


def test_pod_does_not_fit_on_two_half_nodes() -> None:
    assert can_schedule([Capacity(4, 1)], [Capacity(4, 1)])
    assert not can_schedule([Capacity(4, 1)], [Capacity(3, 1), Capacity(3, 1)])


def test_pod_request_is_at_least_its_largest_init_container() -> None:
    spec = pod("1Gi", initContainers=[{"resources": {"limits": {"memory": "2Gi", "cpu": "100m"}}}])
    deployment = {"kind": "Deployment", "spec": {"replicas": 2, "template": {"spec": spec}}}
    assert list_pod_requests([deployment]) == [Capacity(2 * 2**30, 0.2)] * 2


def record(**change: Any) -> str:
    usual = {
        "fleet": "small",
        "started": "2026-01-01T00:00:00+00:00",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "created": psutil.Process().create_time(),
        "releases": (),
        "namespaces": (),
    }
    return RehearsalRecord.model_validate({**usual, **change}).model_dump_json()


def refused(kubectl: Kubectl) -> Problem:
    with pytest.raises(FleetError) as caught:
        refuse_other_rehearsal(kubectl)
    return caught.value.problems[0]


def test_running_rehearsal_is_refused(kubectl: Answers) -> None:
    problem = refused(kubectl(get_namespace="namespace/rayhelm-rehearsal", get_configmap=record()))
    assert "is running on this cluster" in problem.message
    assert "--clean" not in str(problem.fix)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"created": 1.0}, "was interrupted"),
        ({"host": "b"}, "another computer"),
        ({"kept": True, "created": 1.0}, "was kept"),
    ],
)
def test_interrupted_or_kept_rehearsal_has_clean_as_fix(kubectl: Answers, change: Any, text: str) -> None:
    problem = refused(kubectl(get_namespace="namespace/rayhelm-rehearsal", get_configmap=record(**change)))
    assert text in problem.message
    assert isinstance(problem.fix, Fix)
    assert problem.fix.command == "rayhelm rehearse --clean"


def test_namespace_without_a_record_is_refused(kubectl: Answers) -> None:
    assert "an earlier rehearsal left it" in refused(kubectl(get_namespace="namespace/rayhelm-rehearsal")).message


def test_cluster_without_a_rehearsal_is_accepted(kubectl: Answers) -> None:
    refuse_other_rehearsal(kubectl())
