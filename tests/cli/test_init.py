"""`rayhelm init` writes a fleet file that plan and lint accept, from questions, flags, or the pools of discover."""

import io
import json
from pathlib import Path

import pytest
import yaml

from live.test_discover import found_in, written
from rayhelm.check.lint.fleet import check_fleet
from rayhelm.cli.new_fleet.answers import propose_model
from rayhelm.cli.new_fleet.checks import derive_name
from rayhelm.facts import load_catalog
from rayhelm.fleet.load import LoadedFleet, load_fleet
from rayhelm.planner.planner import plan_fleet
from shared.command import Answer, run
from shared.fleets import load
from testbed.nodes import simulated

VALUES = Path(__file__).parents[2] / "values"


class Command:
    """`rayhelm init` in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = folder / "fleet.yaml"
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *flags: str, answers: str | None = None) -> Answer:
        self.monkeypatch.setattr("sys.stdin", io.StringIO(answers or ""))
        yes = () if answers is not None else ("--yes",)
        return run(self.capsys, self.monkeypatch, "init", "-o", str(self.file), *yes, *flags)

    def read(self) -> LoadedFleet:
        return load_fleet(self.file)


@pytest.fixture
def init(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # an unknown model is not looked up
    return Command(tmp_path, capsys, monkeypatch)


def test_defaults_make_a_fleet_that_lint_accepts(init: Command) -> None:
    assert init().code == 0
    assert check_fleet(init.file, ask_ray=False).problems == []
    assert list(plan_fleet(init.read()).gateways) == ["main"]


@pytest.mark.parametrize("task", ["chat", "embed", "rerank", "transcribe"])
@pytest.mark.parametrize("gpu", ["L4-24GB", "H100-SXM-80GB", "MI300X-192GB", "ARC-PRO-B60-24GB"])
def test_proposed_model_of_each_task_is_planned(init: Command, task: str, gpu: str) -> None:
    answer = init("--task", task, "--gpu", gpu)
    assert answer.code == 0, answer.err
    (model,) = plan_fleet(init.read()).models.values()
    assert (model.task, model.source) == (task, propose_model(task, gpu))


def test_flags_are_written_to_the_fleet(init: Command) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    flags = (
        "--fleet acme --gpu h100 --nodes 2 --gpus-per-node 4 --api-server 192.0.2.7 --model Qwen/Qwen3-8B --name small"
    )
    load_flags = "--context 4096 --requests-per-second 20 --input-tokens 500 --output-tokens 100"
    people = "--tenant search --clients web --hub-token hub"
    answer = init(*flags.split(), *load_flags.split(), *people.split(), "--revision", commit)
    assert answer.code == 0, answer.err
    assert "is an example" not in answer.err
    data = yaml.safe_load(init.file.read_text())
    assert data["fleet"] == "acme"
    assert data["pools"] == {"gpu": {"gpu": "H100-SXM-80GB", "nodes": 2, "gpusPerNode": 4}}
    assert data["clusters"]["main"] == {
        "apiServer": {"cidrs": ["192.0.2.7/32"]},
        "gateway": {"allowedClients": ["web"]},
        "weights": {"hubToken": {"name": "hub", "key": "token"}},
    }
    assert data["models"]["small"] == {
        "source": "Qwen/Qwen3-8B",
        "revision": commit,
        "task": "chat",
        "context": 4096,
        "traffic": {"requestsPerSecond": 20.0, "inputTokens": 500, "outputTokens": 100},
    }
    assert data["services"] == {"small": {"tenant": "search"}}
    assert data["tenants"] == {"search": {"models": ["small"], "requestsPerMinute": 2400}}


def test_gated_model_gets_the_secret_of_its_token(init: Command) -> None:
    answer = init("--model", "meta-llama/Llama-3.1-8B-Instruct")
    assert answer.code == 0
    assert "is gated" not in answer.err
    assert init.read().fleet.clusters["main"].weights.hub_token


def test_questions_are_asked_again_after_a_wrong_answer(init: Command) -> None:
    first = ["mine", "L5-24GB", "L4-24GB", "none", "2", "1", "not an address", "192.0.2.7", "On", "team", ""]
    model = ["sing", "chat", "unknown/nothing-7b", "Qwen/Qwen3-4B", "", "main", "", "0", "4096", "-1", "0"]
    answer = init(answers="\n".join([*first, *model]) + "\n")
    assert answer.code == 0, answer.err
    fleet = init.read().fleet
    assert (fleet.fleet, fleet.pools["gpu"].nodes, fleet.models["qwen3-4b"].context) == ("mine", 2, 4096)
    assert list(fleet.tenants) == ["team"]


def test_model_that_does_not_fit_is_asked_again(init: Command) -> None:
    pool = ["mine", "L4-24GB", "1", "1", "192.0.2.7", "team", "team"]
    model = ["chat", "Qwen/Qwen3-235B-A22B", "", "", "", "0", "chat", "Qwen/Qwen3-4B", "", "", "", "0"]
    answer = init(answers="\n".join([*pool, *model]) + "\n")
    assert answer.code == 0, answer.err
    assert "fits in no pool" in answer.err
    assert list(init.read().fleet.models) == ["qwen3-4b"]


def test_missing_answer_is_reported_with_its_flag(init: Command) -> None:
    answer = init(answers="mine\n")
    assert answer.code == 2
    assert "fix: rayhelm init --gpu VALUE, or --yes for all defaults" in answer.err
    assert not init.file.exists()


def test_existing_file_is_never_overwritten(init: Command) -> None:
    init.file.write_text("mine")
    answer = init()
    assert (answer.code, init.file.read_text()) == (2, "mine")
    assert "is not overwritten" in answer.err


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (("--gpu", "L5-24GB"), 2, "--gpu: unknown GPU"),
        (("--gpu", "TPU-V5E-16GB"), 2, "the charts have no worker groups of TPUs"),
        (("--fleet", "My Fleet"), 2, "Write for example `my-fleet`"),
        (("--tenant", "on"), 2, "cannot be a name"),
        (("--name", "../chat"), 2, "cannot be the name of a model"),
        (("--name", "two words"), 2, "cannot be the name of a model"),
        (("--from", str(VALUES)), 2, "is a folder"),
        (("--api-server", "10.0.0.1/8"), 2, "is not an address or CIDR"),
        (("--revision", "main"), 2, "is not a commit"),
        (("--requests-per-second", "nan"), 2, "must be greater than"),
        (("--gpu", "MI300X-192GB", "--image", "ours"), 2, "is not an image with a tag or digest"),
        (("--model", "Qwen/Qwen3-235B-A22B"), 1, "fits in no pool"),
        (("--from", "nowhere.yaml", "--nodes", "2"), 2, "leave out --nodes"),
        (("--from", str(VALUES / "single-gpu/fleet.yaml")), 2, "it is a fleet file"),
    ],
)
def test_wrong_flag_is_refused_and_nothing_is_written(
    init: Command, flags: tuple[str, ...], code: int, message: str
) -> None:
    answer = init(*flags)
    assert answer.code == code
    assert message in answer.err
    assert not init.file.exists()


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "llama-3.1-8b", "8"])
def test_model_may_have_the_name_that_clients_know(init: Command, name: str) -> None:
    answer = init("--name", name)
    assert answer.code == 0, answer.err
    fleet = yaml.safe_load(init.file.read_text())
    assert list(fleet["models"]) == [name]


def test_json_names_the_file_and_the_warnings(init: Command) -> None:
    record = json.loads(init("--format", "json").out)
    assert record["written"] == str(init.file)
    assert any("no `revision`" in text for text in record["warnings"])


@pytest.mark.parametrize("name", ["single-gpu", "multi-node", "two-workstations"])
def test_pools_of_discover_become_a_fleet_that_is_planned(init: Command, name: str, tmp_path: Path) -> None:
    found = found_in(simulated(load((VALUES / name / "fleet.yaml").read_text())))
    pools = tmp_path / "pools.yaml"
    pools.write_text(written(found))
    answer = init("--from", str(pools), "--model", "Qwen/Qwen3-4B")
    assert answer.code == 0, answer.err
    text, loaded = init.file.read_text(), init.read()
    assert plan_fleet(loaded).models["qwen3-4b"]
    assert set(loaded.fleet.pools) == {pool.name for pool in found.pools}
    assert loaded.fleet.clusters["main"].api_server.cidrs == ("10.96.0.1/32", "192.0.2.7/32")
    assert "# assumed: nodes do not report their bandwidth" in text
    assert "Add `models`" not in text
    assert "is an example" not in answer.err


@pytest.mark.parametrize(
    "clusters",
    [
        "",
        "clusters: {main: {}}\n",
        "clusters: {edge: {}, main: {kuberay: 1.6.2}}\n",
        "clusters:\n  main: {kuberay: 1.6.2}\n",
        "clusters:\n  main:\n    kuberay: 1.6.2\n",
    ],
)
def test_cluster_of_the_pools_is_completed_in_each_form(init: Command, clusters: str, tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text(f"{clusters}pools: {{gpu: {{gpu: L4-24GB, nodes: 1}}}}\n")
    answer = init("--from", str(pools))
    assert answer.code == 0, answer.err
    cluster = init.read().fleet.clusters["main"]
    assert (cluster.api_server.cidrs, cluster.gateway.allowed_clients) == (("10.0.0.1/32",), ("apps",))
    assert cluster.kuberay == ("1.6.2" if "1.6.2" in clusters else "1.7.0")


def test_pools_are_read_from_standard_input(
    init: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("pools: {gpu: {gpu: L4-24GB, nodes: 1}}\n"))
    assert run(capsys, monkeypatch, "init", "--yes", "--from", "-", "-o", str(init.file)).code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("nodes: 1\n"))
    answer = run(capsys, monkeypatch, "init", "--yes", "--from", "-", "-o", str(init.file.with_name("other.yaml")))
    assert (answer.code, "has no `pools`" in answer.err) == (2, True)


@pytest.mark.parametrize("text", ["Qwen/Qwen3-8B", "y", "4090", "", "x" * 80, "Ünï/Çode", "--"])
def test_derived_names_are_names(text: str) -> None:
    from rayhelm.cli.new_fleet.checks import check_name

    assert check_name(derive_name(text))


def test_fixed_number_of_replicas_is_named_once(init: Command) -> None:
    assert ": 1 replica of 1 x " in init().out


def test_proposed_models_need_no_token() -> None:
    for task in ("chat", "embed", "rerank", "transcribe", "speak"):
        for gpu in ("T4-16GB", "B200-SXM-180GB"):
            assert not load_catalog().model(propose_model(task, gpu)).needs_token
