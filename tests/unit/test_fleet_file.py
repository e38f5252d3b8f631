"""The fleet file: what is read, and what each wrong one is told."""

from pathlib import Path

import pytest

from rayhelm.errors import FleetError, Problem
from rayhelm.spec.document import parse_document
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.load import fleet_of, load_fleet

SMALL = """\
fleet: small
pools:
  gpu: {gpu: L4-24GB, nodes: 2}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096}
"""


def read(text: str) -> Fleet:
    return fleet_of(parse_document(text, "fleet.yaml")).fleet


def problems(text: str) -> list[Problem]:
    with pytest.raises(FleetError) as caught:
        read(text)
    return list(caught.value.problems)


def the_problem(text: str) -> Problem:
    (one,) = problems(text)
    return one


def test_a_small_fleet_needs_three_keys() -> None:
    fleet = read(SMALL)
    assert fleet.clusters["main"].kuberay == "1.7.0"
    assert fleet.service_names == ("chat",)


@pytest.mark.parametrize(
    ("text", "seconds"), [("600ms", 0.6), ("1s", 1.0), ("1.5s", 1.5), ("2m", 120.0), ("50us", 5e-5), ("1 s", 1.0)]
)
def test_durations_carry_their_unit(text: str, seconds: float) -> None:
    fleet = read(SMALL.replace("context: 4096", f"slo: {{ttft: {text}}}"))
    assert fleet.models["chat"].slo.ttft == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "bits"), [("10Gbit/s", 1e10), ("100Mbit/s", 1e8), ("12.5GB/s", 1e11)])
def test_bandwidths_are_bits_per_second(text: str, bits: float) -> None:
    fleet = read(SMALL + f"networks:\n  lan: {{bandwidth: {text}}}\n")
    assert fleet.networks["lan"].bandwidth == pytest.approx(bits)


def test_memory_is_in_bytes_by_its_own_prefix() -> None:
    fleet = read(SMALL.replace("nodes: 2", "nodes: 2, memoryPerNode: 80GiB"))
    assert fleet.pools["gpu"].memory_per_node == 80 * 2**30


def test_yes_and_on_stay_text() -> None:
    assert read(SMALL.replace("source: Qwen/Qwen2.5-7B-Instruct", "source: on")).models["chat"].source == "on"


def test_models_of_one_service_share_it() -> None:
    text = SMALL.replace("context: 4096}", "service: ai}\n  embed: {source: BAAI/bge-m3, task: embed, service: ai}")
    assert read(text).service_names == ("ai",)
    assert read(text).models_of("ai") == ("chat", "embed")


def test_a_typo_in_a_key_names_the_near_one_and_its_line() -> None:
    problem = the_problem(SMALL.replace("nodes: 2", "nodes: 2, gpuPerNode: 8"))
    assert (problem.file, problem.line, problem.path) == ("fleet.yaml", 3, "pools.gpu.gpuPerNode")
    assert "did you mean `gpusPerNode`" in problem.mend


@pytest.mark.parametrize(
    ("old", "new", "path", "says"),
    [
        ("context: 4096", "slo: {ttft: 600}", "models.chat.slo.ttft", "has no unit; write 600ms or 600s"),
        ("context: 4096", "slo: {ttft: -1s}", "models.chat.slo.ttft", "cannot be negative"),
        ("context: 4096", "slo: {ttft: 1 parsec}", "models.chat.slo.ttft", "is not a duration"),
        ("context: 4096", "slo: {ttft: 0s}", "models.chat.slo.ttft", "more than zero"),
        ("context: 4096", "context: -3", "models.chat.context", "greater than or equal to 16"),
        ("nodes: 2", "nodes: -2", "pools.gpu.nodes", "greater than or equal to 1"),
        ("nodes: 2", "nodes: 1.5", "pools.gpu.nodes", "a whole number"),
        ("nodes: 2", "nodes: two", "pools.gpu.nodes", "a whole number"),
        ("source: Qwen/Qwen2.5-7B-Instruct", "source: null", "models.chat.source", "has no value"),
        ("context: 4096", "task: chatt", "models.chat.task", "is not one of"),
        ("context: 4096", "revision: main", "models.chat.revision", "is not a commit"),
        ("chat:", "Chat_A:", "models.Chat_A", "cannot be a name"),
        ("fleet: small", f"fleet: {'x' * 48}", "fleet", "KubeRay allows 47"),
        ("nodes: 2", "nodes: 2, cluster: edge", "pools.gpu.cluster", "there is no cluster `edge`"),
        ("context: 4096", "pool: gpus", "models.chat.pool", "there is no pool `gpus`"),
        ("context: 4096", "engine: {trust_remote_code: true}", "models.chat.engine.trust_remote_code", "code from"),
        ("gpu: L4-24GB, nodes: 2", "nodes: 2", "pools.gpu", "needs `gpu` and `nodes`, or `hosts`"),
        ("nodes: 2", "nodes: 2, hosts: [{gpu: L4-24GB}]", "pools.gpu.gpu", "beside `hosts`"),
        ("source: Qwen/Qwen2.5-7B-Instruct, ", "", "models.chat.source", "is missing"),
    ],
)
def test_each_wrong_value_is_told_with_its_place(old: str, new: str, path: str, says: str) -> None:
    assert old in SMALL
    problem = the_problem(SMALL.replace(old, new, 1))
    assert problem.path == path
    assert says in problem.message
    assert problem.line


def test_every_problem_is_told_at_once_in_the_order_of_lines() -> None:
    found = problems(SMALL.replace("nodes: 2", "nodes: 0").replace("context: 4096", "contxt: 4096"))
    assert [problem.line for problem in found] == [3, 5]


def test_a_name_is_never_cut() -> None:
    problem = the_problem(SMALL.replace("chat:", f"{'c' * 48}:"))
    assert "48 characters" in problem.message


def test_tenants_cannot_claim_more_gpus_than_there_are() -> None:
    problem = the_problem(SMALL + "tenants:\n  a: {gpus: 2, models: [chat]}\n  b: {gpus: 1}\n")
    assert "claim 3 GPUs (a 2, b 1), and the pools have 2" in problem.message
    assert problem.line == 6


def test_a_tenant_may_only_call_models_that_exist() -> None:
    problem = the_problem(SMALL + "tenants:\n  a: {models: [chap]}\n")
    assert problem.path == "tenants.a.models[0]"
    assert "did you mean `chat`" in problem.mend


def test_a_context_below_the_mean_request_is_refused() -> None:
    text = SMALL.replace(
        "context: 4096", "context: 100, traffic: {requestsPerSecond: 1, inputTokens: 90, outputTokens: 20}"
    )
    assert "mean prompt and answer are 110 tokens" in the_problem(text).message


def test_a_service_stands_on_one_cluster() -> None:
    text = """\
fleet: two
clusters: {main: {}, edge: {}}
pools:
  a: {gpu: L4-24GB, nodes: 1}
  b: {gpu: L4-24GB, nodes: 1, cluster: edge}
models:
  one: {source: x/y, pool: a, service: s}
  two: {source: x/y, pool: b, service: s}
"""
    assert "a RayService stands on one" in the_problem(text).message


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("", "the file is empty", None),
        ("# nothing\n", "the file is empty", None),
        ("- a\n", "not a mapping", 1),
        ("a: [1\nb: 2\n", "not valid YAML", 2),
        ("a: 1\n---\nb: 2\n", "several documents", 3),
        ("fleet: a\nfleet: b\n", "stands twice, first in line 1", 2),
        ("? [a]\n: b\n", "a key must be plain text", 1),
        ("a: !!python/object:os.system x\n", "is not supported", 1),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "merge keys", 3),
    ],
)
def test_yaml_that_is_no_fleet_is_told_in_a_sentence(text: str, says: str, line: int | None) -> None:
    problem = the_problem(text)
    assert says in problem.message
    assert problem.line == line


def test_an_alias_bomb_is_refused() -> None:
    text = "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
    for before, here in zip("abcdef", "bcdefg", strict=True):
        text += f"{here}: &{here} [{','.join([f'*{before}'] * 10)}]\n"
    assert "aliases unfold" in the_problem(text).message


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("a: b\n" * 2_200_000)
    with pytest.raises(FleetError, match="at most 1 MiB"):
        load_fleet(path)


@pytest.mark.parametrize("kind", ["missing", "folder", "binary"])
def test_a_path_that_cannot_be_read_is_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "fleet.yaml"
    says = {"missing": "no such file", "folder": "is a directory", "binary": "not UTF-8"}[kind]
    if kind == "folder":
        path.mkdir()
    if kind == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FleetError, match=says):
        load_fleet(path)
