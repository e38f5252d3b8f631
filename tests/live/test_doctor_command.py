"""`rayhelm doctor`: exit codes, formats and wrong options, on recorded answers."""

import json
from pathlib import Path

import pytest
import yaml

from charts.kit import only, rendered
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.errors import MissingError
from rayhelm.live.cluster import reader
from rayhelm.live.cluster.kinds import LIMIT_RANGES
from rayhelm.live.cluster.recorded import RecordedTransport
from shared.command import Answer, run
from shared.doctor_world import World, fleet

FLEETS = charts_dir().parent / "values"


class Doctor:
    """Runs the command on a world."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch
        self.world = World(fleet())
        monkeypatch.setattr("rayhelm.cli.doctor.connect", lambda context, kubeconfig: self.connect())

    def connect(self) -> reader.ClusterReader:
        return reader.ClusterReader(RecordedTransport(self.world.answers), "`recorded`")

    def __call__(self, *arguments: str) -> Answer:
        return run(self.capsys, self.monkeypatch, "doctor", *arguments)

    def break_limits(self) -> None:
        limits = {"limits": [{"type": "Container", "min": {"memory": "512Mi"}}]}
        metadata = {"name": "[bold]limits", "namespace": "lab"}
        self.world.items(LIMIT_RANGES).append({"kind": "LimitRange", "metadata": metadata, "spec": limits})


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    return Doctor(capsys, monkeypatch)


def test_command_ends_with_0_when_nothing_is_found(doctor: Doctor) -> None:
    answer = doctor("--check", "quota", "--check", "limit-ranges")
    assert (answer.code, answer.err.count("reading")) == (0, 4)
    assert "no findings" in answer.out


def test_command_ends_with_1_and_shows_evidence_cause_and_fix(doctor: Doctor) -> None:
    doctor.break_limits()
    answer = doctor("--check", "limit-ranges")
    assert answer.code == 1
    assert "critical  LimitRange lab/[bold]limits  (limit-ranges)" in answer.out
    for word in ("evidence: min.memory is 512Mi", "cause: the API server refuses", "kubectl edit limitrange"):
        assert word in answer.out


def test_json_has_checks_and_findings(doctor: Doctor) -> None:
    doctor.break_limits()
    answer = doctor("--check", "limit-ranges", "--check", "drift", "--format", "json")
    report = json.loads(answer.out)
    assert answer.code == 1
    assert [(each["id"], each["state"]) for each in report["checks"]] == [
        ("drift", "skipped"),
        ("limit-ranges", "findings"),
    ]
    assert set(report["findings"][0]) == {"check", "severity", "object", "evidence", "cause", "fix"}


def test_command_ends_with_3_when_no_cluster_answers(doctor: Doctor) -> None:
    def refuse() -> reader.ClusterReader:
        raise MissingError("no cluster answers", "kubectl config get-contexts")

    doctor.connect = refuse  # type: ignore[method-assign]
    answer = doctor()
    assert answer.code == 3
    assert "no cluster answers" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--check", "nothing"), "there is no check `nothing`; the checks are: api-services"),
        (("--cluster", "main"), "`--cluster` names a cluster of a fleet file"),
        ((str(FLEETS / "three-tiers"),), "the fleet has several clusters; name this one: --cluster edge | main"),
        ((str(FLEETS / "three-tiers"), "--cluster", "moon"), "the fleet has no cluster `moon`; it has: edge, main"),
        (("--prometheus", "nonsense"), "is not a URL"),
        (("--values", "registry.example/rayhelm:1"), "needs the fleet file"),
        ((str(FLEETS / "multi-node"), "--values", "one"), "`one` has neither a tag other than `latest` nor a digest"),
        ((str(FLEETS / "multi-node"), "--values", "one:latest"), "has neither a tag other than `latest` nor a digest"),
    ],
)
def test_wrong_option_is_refused_with_the_right_ones(doctor: Doctor, arguments: tuple[str, ...], message: str) -> None:
    answer = doctor(*arguments)
    assert answer.code == 2
    assert message in answer.err


def test_rights_of_a_fleet_are_manifests(doctor: Doctor) -> None:
    answer = doctor(str(FLEETS / "multi-node"), "--rbac")
    roles = {
        item["metadata"]["namespace"]: item["rules"][0]["resourceNames"]
        for item in yaml.safe_load_all(answer.out)
        if item["kind"] == "Role"
    }
    assert answer.code == 0
    assert "hf-secret" in roles["research"]
    assert "gateway-keys-research" in roles["gateway"]


def test_values_of_a_fleet_run_the_doctor_by_chart_platform(doctor: Doctor) -> None:
    answer = doctor(str(FLEETS / "multi-node"), "--values", "registry.example:5000/rayhelm:1")
    objects = [
        item
        for item in rendered(yaml.safe_load(answer.out), base="platform/minimal", release="platform", chart="platform")
        if "doctor" in item["metadata"]["name"]
    ]
    (deployment,) = (item for item in objects if item["kind"] == "Deployment")
    (fleet,) = (item["data"]["fleet.yaml"] for item in objects if item["kind"] == "ConfigMap")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    roles = {item["metadata"].get("namespace"): item["rules"] for item in objects if item["kind"] == "Role"}
    assert answer.code == 0
    assert fleet == (FLEETS / "multi-node" / "fleet.yaml").read_text()
    assert container["image"] == "registry.example:5000/rayhelm:1"
    assert container["command"] == [
        *("rayhelm", "doctor", "/etc/rayhelm/fleet.yaml"),
        *("--prometheus=http://prometheus-operated.monitoring:9090", "--serve=9111", "--every=10"),
    ]
    assert "hf-secret" in roles["research"][0]["resourceNames"]
    assert all(rule["verbs"] == ["get"] for rules in roles.values() for rule in rules)


def test_values_name_the_cluster_of_a_fleet_with_several(doctor: Doctor) -> None:
    image = f"registry.example/rayhelm@sha256:{'0' * 64}"
    answer = doctor(str(FLEETS / "three-tiers"), "--cluster", "edge", "--values", image)
    values = yaml.safe_load(answer.out)["doctor"]
    assert (values["cluster"], values["image"]["digest"]) == ("edge", image.partition("@")[2])


def test_fleet_file_that_does_not_exist_is_refused(doctor: Doctor, tmp_path: Path) -> None:
    assert doctor(str(tmp_path / "nowhere.yaml")).code == 1


def test_values_have_the_measurements_where_the_fleet_file_names_them(doctor: Doctor, tmp_path: Path) -> None:
    text = (FLEETS / "two-workstations" / "fleet.yaml").read_text()
    (tmp_path / "fleet.yaml").write_text(f"measurements: measured/lab.yaml\n{text}")
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "lab.yaml").write_text("pools: {}\n")
    answer = doctor(str(tmp_path / "fleet.yaml"), "--values", "registry.example/rayhelm:1")
    found = rendered(yaml.safe_load(answer.out), base="platform/minimal", release="platform", chart="platform")
    assert only(found, "ConfigMap", "platform-doctor")["data"]["measurements.yaml"] == "pools: {}\n"
    (volume, _) = only(found, "Deployment", "platform-doctor")["spec"]["template"]["spec"]["volumes"]
    assert {item["path"] for item in volume["configMap"]["items"]} == {"fleet.yaml", "measured/lab.yaml"}


def test_values_refuse_measurements_above_the_fleet_file(doctor: Doctor, tmp_path: Path) -> None:
    text = (FLEETS / "two-workstations" / "fleet.yaml").read_text()
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "fleet.yaml").write_text(f"measurements: ../measured.yaml\n{text}")
    (tmp_path / "measured.yaml").write_text("pools: {}\n")
    answer = doctor(str(tmp_path / "lab"), "--values", "registry.example/rayhelm:1")
    assert answer.code == 1
    assert "`../measured.yaml` is not a path below the folder" in answer.err
