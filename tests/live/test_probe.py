"""`rayhelm probe`: Jobs, results and what is written, against an API server in memory."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.pod_security import violations
from rayhelm.errors import MissingError
from rayhelm.fleet.measurements import FleetMeasurements, parse_measurements
from rayhelm.fleet.worker_images import name_worker_image
from rayhelm.live.probe import run
from rayhelm.live.probe.objects import build_setup
from rayhelm.live.probe.run import list_pairs, list_rounds
from shared import command
from shared.fleets import load
from shared.probe_world import NODE, PAIR, ProbeWorld, end, wait
from testbed.nodes import uniform

Object = dict[str, Any]
FLEET = """\
fleet: probed
pools:
  gpu: {gpu: L4-24GB, nodes: 3, network: ethernet-10g}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, unpinnedReason: a test of probe}
"""
NAMES = ("uniform-0", "uniform-1", "uniform-2")


class Probe(ProbeWorld):
    """Runs the command on a world."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(uniform("L4-24GB", 3, 1))
        self.capsys, self.monkeypatch = capsys, monkeypatch
        monkeypatch.setattr("rayhelm.cli.probe.connect_writer", lambda context, kubeconfig: self.writer)
        monkeypatch.setattr(run, "POLL_S", 0.0)

    def __call__(self, *arguments: str) -> command.Answer:
        return command.run(self.capsys, self.monkeypatch, "probe", *arguments)

    @property
    def stored(self) -> FleetMeasurements:
        assert self.config_map
        return parse_measurements(yaml.safe_dump({"kind": "ConfigMap", **self.config_map}), "map")


@pytest.fixture
def probe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Probe:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.yaml").write_text(FLEET)
    return Probe(capsys, monkeypatch)


def test_probe_measures_nodes_and_pairs_and_stores_them(probe: Probe) -> None:
    answer = probe("fleet.yaml", "-o", "measured.yaml")
    assert answer.code == 0, answer.err
    pool = probe.stored.pools["gpu"]
    assert [node.node for node in pool.nodes] == list(NAMES)
    assert [pair.nodes for pair in pool.pairs] == [NAMES[:2], NAMES[1:]]
    assert (pool.torch, pool.gpu, pool.nodes[0].matrix_tflops) == ("2.13.0", "L4-24GB", 80.1)
    written = parse_measurements(Path("measured.yaml").read_text(), "measured.yaml")
    assert written.pools == probe.stored.pools
    assert sorted(probe.deleted) == sorted(job["metadata"]["name"] for job in probe.created)
    assert "1.18" in answer.out


def test_plan_uses_the_written_measurements(probe: Probe) -> None:
    probe("fleet.yaml", "-o", "measured.yaml")
    Path("fleet.yaml").write_text(f"measurements: measured.yaml\n{FLEET}")
    answer = command.run(probe.capsys, probe.monkeypatch, "plan", "fleet.yaml")
    assert "network = ethernet-10g (1.2 GB/s, 61 us, measured)" in answer.out


def test_plan_tries_measurements_that_the_fleet_file_does_not_name(probe: Probe) -> None:
    probe("fleet.yaml", "-o", "measured.yaml")
    answer = command.run(probe.capsys, probe.monkeypatch, "plan", "fleet.yaml", "--measured", "measured.yaml")
    assert "network = ethernet-10g (1.2 GB/s, 61 us, measured)" in answer.out
    absent = command.run(probe.capsys, probe.monkeypatch, "plan", "fleet.yaml", "--measured", "absent.yaml")
    assert (absent.code, "absent.yaml: no such file" in absent.err) == (1, True)


def test_probe_keeps_the_results_of_other_pools(probe: Probe) -> None:
    probe("fleet.yaml", "-o", "measured.yaml")
    Path("fleet.yaml").write_text(FLEET.replace("gpu: {gpu: L4-24GB", "other: {gpu: L4-24GB"))
    assert probe("fleet.yaml", "-o", "measured.yaml").code == 0
    for found in (probe.stored, parse_measurements(Path("measured.yaml").read_text(), "")):
        assert list(found.pools) == ["gpu", "other"]


def test_measuring_pods_meet_pod_security_restricted_and_have_no_token(probe: Probe) -> None:
    probe("fleet.yaml")
    for job in probe.created:
        template = job["spec"]["template"]
        assert not violations(template)
        assert template["spec"]["automountServiceAccountToken"] is False
        assert template["spec"]["enableServiceLinks"] is False
        assert template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_node_with_several_gpus_has_room_for_a_process_of_each(probe: Probe) -> None:
    probe.nodes = uniform("L4-24GB", 1, 4)
    Path("fleet.yaml").write_text(FLEET.replace("nodes: 3", "nodes: 1, gpusPerNode: 4"))
    probe.node_status = lambda node: [end({**NODE, "gpus": 4, "link_gb_per_s": 20.0, "link_latency_us": 9.0})]
    assert probe("fleet.yaml").code == 0
    (job,) = probe.created
    limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "8", "memory": "24Gi", "nvidia.com/gpu": "4"}


def test_pods_of_a_pair_run_on_its_two_nodes_only(probe: Probe) -> None:
    probe("fleet.yaml")
    job = next(job for job in probe.created if "-pair-" in job["metadata"]["name"])
    assert (job["spec"]["completions"], job["spec"]["completionMode"]) == (2, "Indexed")
    affinity = job["spec"]["template"]["spec"]["affinity"]
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchFields"][0]["values"] for term in terms] == [["uniform-0"], ["uniform-1"]]
    (apart,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"].items() <= job["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("network", "is_off"), [("rdma-100g", True), ("rdma-100g, rdmaResource: rdma/hca", False), ("ethernet-10g", True)]
)
def test_pair_uses_infiniband_where_workers_have_it(probe: Probe, network: str, is_off: bool) -> None:
    Path("fleet.yaml").write_text(FLEET.replace("ethernet-10g", network))
    probe("fleet.yaml")
    job = next(job for job in probe.created if "-pair-" in job["metadata"]["name"])
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert ({"name": "NCCL_IB_DISABLE", "value": "1"} in container["env"]) is is_off


def test_host_names_of_a_pair_are_at_most_63_characters(probe: Probe) -> None:
    Path("fleet.yaml").write_text(FLEET.replace("gpu: {gpu", f"{'p' * 40}: {{gpu"))
    assert probe("fleet.yaml").code == 0
    assert max(len(f"{job['metadata']['name']}-0") for job in probe.created) <= 63


def test_probe_with_cpu_requests_no_gpu(probe: Probe) -> None:
    probe.node_status = lambda node: [end({**NODE, "device": "cpu", "gpus": 0})]
    assert probe("fleet.yaml", "--cpu").code == 0
    limits = [job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] for job in probe.created]
    assert {tuple(each) for each in limits} == {("cpu", "memory")}


def test_dry_run_prints_the_jobs_and_creates_none(probe: Probe) -> None:
    answer = probe("fleet.yaml", "--dry-run")
    assert [job["kind"] for job in yaml.safe_load_all(answer.out)] == ["Job"] * 5
    assert not probe.created


def test_jobs_pass_the_admission_policies_of_the_project(probe: Probe) -> None:
    Path("jobs.yaml").write_text(
        probe("fleet.yaml", "--dry-run", "--image", "registry.example/ray@sha256:" + 64 * "0").out
    )
    answer = command.run(probe.capsys, probe.monkeypatch, "lint", "jobs.yaml")
    assert (answer.code, answer.err) == (0, "")
    Path("jobs.yaml").write_text(Path("jobs.yaml").read_text().replace("rayhelm.dev/tenant", "other/tenant"))
    assert "needs the label rayhelm.dev/tenant" in command.run(probe.capsys, probe.monkeypatch, "lint", "jobs.yaml").err


def test_pairs_of_one_round_have_no_node_in_common() -> None:
    pairs = list_pairs([str(index) for index in range(7)])
    assert {name for pair in pairs for name in pair} == set("0123456")
    for part in list_rounds(pairs):
        names = [name for pair in part for name in pair]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (end({"error": "RuntimeError: no NCCL"}, 1, "Error"), "the measurement failed: RuntimeError: no NCCL"),
        (end('{"device": "cu'), "the result is not complete"),
        (end({**NODE, "memory_gb_per_s": -1}), "the result is malformed: memory_gb_per_s"),
        (end({**NODE, "mood": "good"}), "the result is malformed: mood"),
        (end("", 137, "OOMKilled"), "its pod ended with OOMKilled, exit code 137"),
        ({"phase": "Failed", "reason": "Evicted"}, "its pod ended with Evicted"),
    ],
    ids=["error", "half-written", "malformed", "unknown-key", "out-of-memory", "evicted"],
)
def test_node_without_a_result_is_skipped_with_the_reason(probe: Probe, status: Object, message: str) -> None:
    probe.node_status = lambda node: [status if node == "uniform-1" else end(NODE)]
    answer = probe("fleet.yaml")
    assert answer.code == 0
    assert f"pool gpu, uniform-1: not measured: {message}" in answer.err
    assert [pair.nodes for pair in probe.stored.pools["gpu"].pairs] == [("uniform-0", "uniform-2")]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "0/3 nodes: 1 Insufficient nvidia.com/gpu"}]},
            "the node was too busy, or does not take the pod (0/3 nodes: 1 Insufficient nvidia.com/gpu)",
        ),
        (wait("ImagePullBackOff", "no such image"), "its pod waits: ImagePullBackOff no such image"),
        ({"phase": "Running"}, "the program still runs; give it more time: --timeout MINUTES"),
        (None, "its Job has no pod: a ResourceQuota, an admission policy, or a PriorityClass"),
    ],
    ids=["busy", "no-image", "slow", "no-pod"],
)  # fmt: skip
def test_probe_says_what_a_pod_waits_for(
    probe: Probe, monkeypatch: pytest.MonkeyPatch, status: Object | None, message: str
) -> None:
    times = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(run.time, "monotonic", lambda: float(next(times)))
    probe.node_status = lambda node: [status] if status else []
    answer = probe("fleet.yaml")
    assert answer.code == 1
    assert message in answer.err
    assert not probe.jobs


def test_probe_measures_no_pair_of_a_node_that_is_not_ready(probe: Probe) -> None:
    probe.nodes[2]["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "KubeletStopped"}]
    answer = probe("fleet.yaml")
    assert "uniform-2: not measured: the node is not Ready (KubeletStopped)" in answer.err
    assert [pair.nodes for pair in probe.stored.pools["gpu"].pairs] == [NAMES[:2]]


def test_busy_node_of_a_pair_is_named_whichever_end_it_is(probe: Probe) -> None:
    probe.pair_status = lambda nodes: [end(PAIR), end({**PAIR, "rank": 1, "busy": "2.0 GiB of GPU 0 were in use"})]
    probe("fleet.yaml")
    assert probe.stored.pools["gpu"].pairs[0].why_not == "the node was busy: 2.0 GiB of GPU 0 were in use"


def test_probe_replaces_a_config_map_that_cannot_be_read(probe: Probe) -> None:
    assert probe.config_map
    probe.config_map["data"] = {"measurements.yaml": "pools: {gpu: ["}
    answer = probe("fleet.yaml")
    assert "the earlier measurements of the cluster are replaced, because they cannot be read" in answer.err
    assert list(probe.stored.pools) == ["gpu"]


def test_probe_does_not_overwrite_a_file_of_another_kind(probe: Probe) -> None:
    answer = probe("fleet.yaml", "-o", "fleet.yaml")
    assert answer.code == 1
    assert Path("fleet.yaml").read_text() == FLEET
    assert not probe.created


@pytest.mark.parametrize(
    "what",
    ["/api/v1/nodes", "POST /apis/batch/v1/namespaces/rayhelm-probe/jobs",
     "PATCH /api/v1/namespaces/rayhelm-probe/configmaps/rayhelm-measurements"],
)  # fmt: skip
def test_missing_right_ends_with_3_and_names_the_setup(probe: Probe, what: str) -> None:
    probe.forbidden.add(what)
    answer = probe("fleet.yaml")
    assert answer.code == 3
    assert "the account may not do this" in answer.err
    assert "rayhelm probe fleet.yaml --setup --namespace rayhelm-probe | kubectl apply -f -" in answer.err
    assert not probe.jobs


def test_cluster_without_the_setup_ends_with_3_before_any_job(probe: Probe) -> None:
    probe.config_map = None
    answer = probe("fleet.yaml")
    assert answer.code == 3
    assert "namespace rayhelm-probe lacks the objects of a probe" in answer.err
    assert not probe.created


def test_cluster_that_does_not_answer_ends_with_3(probe: Probe) -> None:
    def refuse(context: str, kubeconfig: Path | None) -> None:
        raise MissingError("cluster `a` does not answer", "kubectl config get-contexts")

    probe.monkeypatch.setattr("rayhelm.cli.probe.connect_writer", refuse)
    assert probe("fleet.yaml").code == 3


def test_pool_without_nodes_is_refused_with_its_line(probe: Probe) -> None:
    probe.nodes = uniform("H100-SXM-80GB", 1, 8)
    answer = probe("fleet.yaml")
    assert answer.code == 1
    assert "fleet.yaml:3: pools.gpu: none of the 1 nodes of cluster test is in this pool" in answer.err


def test_probe_warns_of_a_pool_without_nodes_and_measures_the_others(probe: Probe) -> None:
    more = "pools:\n  absent: {gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}\n"
    Path("fleet.yaml").write_text(FLEET.replace("pools:\n", more))
    answer = probe("fleet.yaml")
    assert answer.code == 0
    assert "fleet.yaml:3: pools.absent: none of the 3 nodes" in answer.err
    assert list(probe.stored.pools) == ["gpu"]
    assert probe("fleet.yaml", "--pool", "absent").code == 1


def test_unknown_pool_is_wrong_usage(probe: Probe) -> None:
    answer = probe("fleet.yaml", "--pool", "gpus")
    assert answer.code == 2
    assert "the fleet has no pool `gpus` in cluster `main`" in answer.err


def test_setup_allows_the_images_of_the_pools_and_the_named_one(probe: Probe) -> None:
    stock = name_worker_image(load(FLEET).fleet, "gpu")
    answer = probe("fleet.yaml", "--setup", "--image", "registry.example/other:1")
    policy = next(item for item in yaml.safe_load_all(answer.out) if item["kind"] == "ValidatingAdmissionPolicy")
    images = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}["images"]
    assert json.loads(images) == sorted([stock, "registry.example/other:1"])


def test_setup_without_a_fleet_file_is_wrong_usage(probe: Probe) -> None:
    answer = probe("--setup")
    assert (answer.code, "the fleet file is missing" in answer.err) == (2, True)


def test_namespace_of_the_doctor_is_refused(probe: Probe) -> None:
    answer = probe("fleet.yaml", "--namespace", "rayhelm-system")
    assert answer.code == 2
    assert "has the account of the doctor" in answer.err
    assert not probe.created


def test_setup_gives_the_workers_no_rights() -> None:
    objects = build_setup("there")
    subjects = [subject["name"] for item in objects for subject in item.get("subjects", [])]
    assert set(subjects) == {"rayhelm-probe"}
    rules = {item["kind"]: item["rules"] for item in objects if "rules" in item}
    assert rules["ClusterRole"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    assert all("*" not in str(rule) and "secrets" not in str(rule) for rule in rules["Role"])
    (policy,) = (item["spec"] for item in objects if item["kind"] == "NetworkPolicy")
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert all("ipBlock" not in str(rule) for rule in (*policy["ingress"], *policy["egress"]))
