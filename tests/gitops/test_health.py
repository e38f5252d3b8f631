"""Health of RayServices, RayClusters and RayJobs as Argo CD judges it, for statuses of the real operator."""

from typing import Any

import pytest

from gitops.lua import CUSTOMIZATIONS, KINDS, HealthCase, assess, list_cases

CASES = list_cases()
STATUSES = {"Healthy", "Progressing", "Degraded", "Suspended"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_health_is_as_recorded(case: HealthCase) -> None:
    assert assess(case.kind, case.load()) == (case.status, case.message)


@pytest.mark.parametrize("kind", KINDS)
def test_every_status_of_a_kind_has_a_case(kind: str) -> None:
    # A suspended Application is Healthy, or it stops waves.
    wanted = STATUSES - {"Suspended"} if kind == "argoproj.io/Application" else STATUSES
    assert {case.status for case in CASES if case.kind == kind} == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_every_object_of_testdata_is_tested(kind: str) -> None:
    files = {path.relative_to(CUSTOMIZATIONS / kind).as_posix() for path in (CUSTOMIZATIONS / kind).rglob("testdata/*")}
    assert files == {case.input_path for case in CASES if case.kind == kind}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [None, {}], ids=["without-status", "empty-status"])
def test_object_that_no_operator_has_seen_is_progressing(kind: str, status: Any) -> None:
    item = {"metadata": {"name": "chat", "generation": 1}, "spec": {"rayClusterConfig": {}}, "status": status}
    assert assess(kind, item)[0] == "Progressing"


def find(name: str) -> HealthCase:
    return next(case for case in CASES if str(case) == f"ray.io/RayService/{name}")


def test_ready_service_is_degraded_when_a_model_has_failed() -> None:
    item = find("ready-model-failed").load()
    (ready,) = [found for found in item["status"]["conditions"] if found["type"] == "Ready"]
    assert ready["status"] == "True"
    assert assess("ray.io/RayService", item)[0] == "Degraded"


def test_invalid_service_is_degraded_although_kuberay_has_not_observed_it() -> None:
    item = find("validation-failed").load()
    assert item["status"]["observedGeneration"] < item["metadata"]["generation"]
    assert assess("ray.io/RayService", item)[0] == "Degraded"


def test_service_is_progressing_until_its_last_edit_is_observed() -> None:
    item = find("ready").load()
    item["metadata"]["generation"] += 1
    assert assess("ray.io/RayService", item) == ("Progressing", "waiting for KubeRay to observe generation 2")


def test_unhealthy_deployment_is_degraded_in_a_running_application() -> None:
    item = find("ready").load()
    application = item["status"]["activeServiceStatus"]["applicationStatuses"]["chat"]
    application["serveDeploymentStatuses"] = {"llama": {"status": "UNHEALTHY", "message": "out of memory"}}
    text = "application chat is RUNNING, llama is UNHEALTHY (out of memory)"
    assert assess("ray.io/RayService", item) == ("Degraded", text)


def test_service_is_healthy_when_it_is_suspended_as_wanted() -> None:
    assert assess("ray.io/RayService", find("suspended").load())[0] == "Healthy"


def test_service_without_pods_is_suspended_although_its_status_is_ready() -> None:
    """KubeRay 1.6.2 may leave the status as it was."""
    item = find("ready").load()
    item["spec"]["rayClusterConfig"]["suspend"] = True
    assert assess("ray.io/RayService", item)[0] == "Suspended"


def test_suspended_application_lets_the_next_wave_start() -> None:
    case = next(case for case in CASES if str(case) == "argoproj.io/Application/suspended")
    assert assess(case.kind, case.load())[0] == "Healthy"
