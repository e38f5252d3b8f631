"""`rayhelm doctor` on a reference fleet: nothing is found while it is healthy, and each planted fault with its cause.

The doctor runs with exactly the rights that chart platform gives it. All faults are planted at once, and found in one
run. With RAYHELM_RECORD=FILE, the answers of the API server are written there, for the unit tests.
"""

import base64
import fnmatch
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from cluster.kit.cluster import Cluster
from cluster.kit.fleets import VALUES, Fleet
from cluster.kit.plants import plant
from cluster.kit.standing import Standing, install_fleet
from cluster.kit.wait import eventually
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.live.cluster.reader import ClusterReader, ForbiddenError, connect
from rayhelm.live.cluster.recorded import Recording
from rayhelm.live.doctor.chart_values import build_values
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import CheckState, DoctorReport
from rayhelm.live.doctor.run import run_checks
from shared.doctor_recording import write_recording
from shared.plant import Plant, load_plants
from testbed.control_plane.kubeconfig import with_token

FLEET = Fleet("two-workstations", "main")
DOCTOR = "platform-doctor"
"""Its objects, which chart platform makes by value."""
PLANTS = [
    pytest.param(name, fault, id=f"{name}-{index}")
    for name, faults in load_plants().items()
    for index, fault in enumerate(faults)
    if not fault.is_only_recorded
]


class Patient(NamedTuple):
    """The installed fleet, and the doctor's account."""

    cluster: Cluster
    rendered: Rendered
    kubeconfig: Path
    standing: Standing

    def examine(self, reader: ClusterReader | None = None) -> DoctorReport:
        """Run all checks as the doctor's account."""
        return run_checks(Facts(reader or connect(kubeconfig=self.kubeconfig), self.rendered, "main"))


@pytest.fixture(scope="module")
def patient(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    folder = tmp_path_factory.mktemp("doctor")
    with cluster.machines(FLEET.machines()), install_fleet(FLEET, cluster) as standing:
        # Not in the fleet: a person creates the keys of the tenant.
        keys = f"{hashlib.sha256(b'a key').hexdigest()} ci\n"
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "gateway-keys-lab", "namespace": "gateway"},
                "data": {"keys": base64.b64encode(keys.encode()).decode()},
            }
        )
        document = yaml.safe_load((VALUES / FLEET.name / "fleet.yaml").read_text())
        document["clusters"]["main"]["kuberay"] = cluster.place.kuberay
        (folder / "fleet.yaml").write_text(yaml.safe_dump(document))
        rendered = render_fleet(folder / "fleet.yaml")
        (folder / "doctor.yaml").write_text(build_values(rendered, "main", "registry.example/rayhelm:1"))
        standing.helm.install(
            "platform", "platform", "rayhelm-system", folder / "doctor.yaml", "--reset-then-reuse-values"
        )
        token = cluster.kubectl("create", "token", DOCTOR, "--namespace=rayhelm-system").strip()
        account = with_token(folder / "kubeconfig", cluster.place.kubeconfig, "doctor", token)
        yield Patient(cluster, rendered, account, standing)


@pytest.fixture(scope="module")
def healthy(patient: Patient) -> DoctorReport:
    """The report of the healthy fleet. Statuses of budgets, quotas and endpoints come a moment after the pods."""
    reader = connect(kubeconfig=patient.kubeconfig)
    recording = Recording(reader._transport)

    def examine() -> DoctorReport | None:
        report = patient.examine(ClusterReader(recording))
        return report if not report.findings else None

    report = eventually(examine, "a report without findings", shows=lambda: patient.examine().findings)
    if file := os.environ.get("RAYHELM_RECORD"):
        write_recording(recording.answers, Path(file))
    return report


@pytest.fixture(scope="module")
def ill(patient: Patient, healthy: DoctorReport) -> Iterator[DoctorReport]:
    """The report after all faults were planted."""
    faults: list[Plant] = [parameter.values[1] for parameter in PLANTS]  # type: ignore[misc]
    for fault in faults:
        plant(patient.cluster, fault)
    late = [(parameter.values[0], parameter.values[1]) for parameter in PLANTS]

    def examine() -> DoctorReport | None:
        report = patient.examine()
        return report if all(_find(report, str(name), fault) for name, fault in late if fault.eventually) else None

    report = eventually(examine, "the findings that wait for a controller", shows=lambda: patient.examine().findings)
    try:
        yield report
    finally:
        for fault in faults:
            for item in fault.create:
                cluster, metadata = patient.cluster, item["metadata"]
                cluster.delete(item["kind"], metadata["name"], metadata.get("namespace", ""))


def _find(report: DoctorReport, check: str, fault: Plant) -> bool:
    return any(
        finding.check == check
        and fnmatch.fnmatch(finding.object, fault.object)
        and re.search(fault.found, f"{finding.evidence} | {finding.cause}", re.DOTALL)
        for finding in report.findings
    )


def test_healthy_fleet_has_no_findings(healthy: DoctorReport) -> None:
    assert healthy.findings == ()
    assert {result.state for result in healthy.checks} <= {CheckState.ok, CheckState.skipped}


def test_deployment_of_the_doctor_becomes_available(patient: Patient) -> None:
    def available() -> int:
        found = patient.cluster.one("Deployment", DOCTOR, "rayhelm-system")
        return int(found.get("status", {}).get("availableReplicas", 0))

    eventually(lambda: available() == 1, "the doctor's pod", shows=lambda: patient.cluster.tell("rayhelm-system"))


@pytest.mark.parametrize(("check", "fault"), PLANTS)
def test_planted_fault_is_found_with_its_cause(ill: DoctorReport, check: str, fault: Plant) -> None:
    mine = [finding for finding in ill.findings if finding.check == check]
    assert _find(ill, check, fault), "\n\n".join(str(finding) for finding in mine)


def test_at_least_twenty_faults_are_planted_on_the_control_plane() -> None:
    assert len(PLANTS) >= 20


def test_application_that_fails_is_found_although_the_service_is_ready(patient: Patient, healthy: DoctorReport) -> None:
    ray = patient.cluster.place.ray
    with ray.failing("lab", "qwen3-32b", applications={"qwen3-32b": "DEPLOY_FAILED"}):

        def find() -> list[str]:
            # The planted faults have findings of this check too.
            evidence = [each.evidence for each in patient.examine().findings if each.check == "ray-services"]
            return [text for text in evidence if "DEPLOY_FAILED" in text]

        eventually(find, "a finding about the application", shows=lambda: patient.examine().findings)


def test_no_finding_shows_the_content_of_a_secret(ill: DoctorReport) -> None:
    assert "sk-the-key-itself" not in ill.model_dump_json()
    assert base64.b64encode(b"sk-the-key-itself").decode()[:20] not in ill.model_dump_json()


def test_account_reads_no_other_secret_and_changes_nothing(patient: Patient, healthy: DoctorReport) -> None:
    from rayhelm.live.cluster.kinds import SECRETS

    reader = connect(kubeconfig=patient.kubeconfig)
    with pytest.raises(ForbiddenError):
        reader.list(SECRETS, "gateway")
    with pytest.raises(ForbiddenError):
        reader.get(SECRETS, "sh.helm.release.v1.gateway.v1", "gateway")
    account = f"system:serviceaccount:rayhelm-system:{DOCTOR}"
    for verb in ("create", "update", "patch", "delete"):
        allowed = patient.cluster.kubectl(
            *("auth", "can-i", "--list", f"--as={account}", "--namespace=lab", "--no-headers")
        )
        assert f" {verb}" not in "\n".join(line for line in allowed.splitlines() if "selfsubject" not in line.lower())


def test_forbidden_read_is_a_finding_with_the_missing_right(patient: Patient, healthy: DoctorReport) -> None:
    cluster = patient.cluster
    token = cluster.kubectl("create", "token", "default", "--namespace=lab").strip()
    weak = with_token(patient.kubeconfig.with_name("weak"), cluster.place.kubeconfig, "weak", token)
    report = patient.examine(connect(kubeconfig=weak))
    assert {result.state for result in report.checks} <= {CheckState.not_checked, CheckState.skipped, CheckState.ok}
    quotas = next(finding for finding in report.findings if finding.check == "quota")
    assert "forbidden" in quotas.evidence
    assert "the account may not read this" in quotas.cause
    (role,) = yaml.safe_load_all(quotas.fix)
    assert {"events", "resourcequotas"} == set(role["rules"][0]["resources"])
