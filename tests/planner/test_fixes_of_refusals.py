"""Fixes of refused fleets that a person pastes: each one has to be accepted, or at least to mean what was meant."""

import re
from pathlib import Path

import pytest

from rayhelm.errors import Fix, FleetError
from rayhelm.fleet.load import load_fleet
from shared.fleets import plan, refused

SMALL = "Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    ("gpu", "source", "helps"),
    [
        ("Strix-Halo-128GB", "meta-llama/Llama-3.3-70B-Instruct", False),
        ("L4-24GB", "meta-llama/Llama-3.1-8B-Instruct", True),
    ],
)
def test_whole_gpu_is_proposed_only_for_a_model_that_fits_it(gpu: str, source: str, helps: bool) -> None:
    problem = refused(f"{{gpu: {gpu}, nodes: 1}}", f"{{source: {source}, context: 4096, gpuFraction: 0.5}}")
    paths = [fix.path for fix in (problem.fix, *problem.alternatives)]
    assert any(path.endswith("gpuFraction") for path in paths) is helps


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        ("slo: {ttft: %s}", "2sec", "2s"),
        ("slo: {tpot: %s}", "60 MS", "60ms"),
        ("memory: {weights: %s, kvPerToken: 1KiB}", "15Gi", "15GiB"),
        ("memory: {weights: 15GiB, kvPerToken: %s}", "150 kb", "150kB"),
        ("memory: {weights: %s, kvPerToken: 1KiB}", "99999Gi", "80GiB"),
    ],
)
def test_fix_of_a_unit_keeps_the_number(field: str, wrong: str, right: str) -> None:
    problem = refused("{gpu: L4-24GB, nodes: 1}", f"{{source: {SMALL}, context: 4096, {field % wrong}}}")
    assert problem.fix.value == right


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("400Gbps", "400Gbit/s"), ("400 Gb/s", "400Gbit/s"), ("50gb/s", "10Gbit/s"), ("100 GBIT/S", "100Gbit/s")],
)
def test_fix_of_a_bandwidth_does_not_take_bits_for_bytes(wrong: str, right: str) -> None:
    problem = refused(
        "{gpu: L4-24GB, nodes: 1}", f"{{source: {SMALL}, context: 4096}}", f"networks: {{ib: {{bandwidth: {wrong}}}}}"
    )
    assert problem.fix.value == right


@pytest.mark.parametrize(("wrong", "right"), [("2", 2), ("two", 1), ("0", 1)])
def test_number_in_quotes_is_proposed_without_them(wrong: str, right: int) -> None:
    problem = refused("{gpu: L4-24GB, nodes: 2}", f"{{source: {SMALL}, context: 4096, replicas: '{wrong}'}}")
    assert problem.fix.value == right


@pytest.mark.parametrize(("wrong", "right"), [("0.25", 0.25), ("7.5", 0.5)])
def test_share_in_quotes_is_proposed_only_within_its_bounds(wrong: str, right: float) -> None:
    problem = refused("{gpu: L4-24GB, nodes: 2}", f"{{source: {SMALL}, context: 4096, gpuFraction: '{wrong}'}}")
    assert (problem.message, problem.fix.value) == (f"must be a number, not the string `{wrong}`", right)


@pytest.mark.parametrize(
    ("url", "source"),
    [
        (f"https://huggingface.co/{SMALL}", SMALL),
        (f"https://hf.co/{SMALL}/tree/main", SMALL),
        (f"hf://{SMALL}", SMALL),
        ("https://huggingface.co/datasets/foo/bar", "s3://acme-models/bar"),
        ("https://huggingface.co/acme/collections", "s3://acme-models/collections"),
        ("https://huggingface.co/acme/collections-7b", "acme/collections-7b"),
        ("https://models.example/llama", "s3://acme-models/llama"),
    ],
)
def test_address_of_the_hub_becomes_its_id(url: str, source: str) -> None:
    assert refused("{gpu: L4-24GB, nodes: 1}", f"{{source: '{url}', context: 4096}}").fix.value == source


SAME_MODEL = {
    "Qwen/Quen3-8B": "Qwen/Qwen3-8B",
    "acme/Meta-Llama-3.1-70B-Instruct-AWQ-INT4": "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
}
OTHER_MODELS = [
    "hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4",
    "meta-llama/Llama-2-7b-chat-hf",
    "Qwen/Qwen3-9B",
    "Qwen/Qwen3-32B-FP4",
    "acme/zzzz",
]


@pytest.mark.parametrize(("name", "meant"), SAME_MODEL.items())
def test_mistyped_model_is_answered_with_the_one_of_its_size(name: str, meant: str) -> None:
    problem = refused("{gpu: L4-24GB, nodes: 1}", f"{{source: {name}}}")
    assert (problem.fix.key, problem.fix.value) == ("source", meant)
    others = [fix.value for fix in problem.alternatives if fix.key == "source"]
    assert meant not in others


@pytest.mark.parametrize("name", OTHER_MODELS)
def test_unknown_model_is_never_replaced_by_another_one(name: str) -> None:
    problem = refused("{gpu: L4-24GB, nodes: 1}", f"{{source: {name}}}")
    assert problem.fix.command == f"hf download {name} config.json --local-dir FOLDER"
    assert not problem.alternatives


@pytest.mark.parametrize("name", ["llama3:8b", "gemma3:8b"])
def test_name_of_another_family_with_the_same_numbers_is_no_proposal(name: str) -> None:
    problem = refused("{gpu: L4-24GB, nodes: 1}", f"{{source: '{name}'}}")
    assert not [fix for fix in (problem.fix, *problem.alternatives) if "Qwen" in str(fix.value)]


def test_name_of_a_model_for_another_task_is_no_proposal() -> None:
    problem = refused("{gpu: L4-24GB, nodes: 1}", "{source: Qwen/Quen3-8B, task: transcribe}")
    assert not [fix for fix in (problem.fix, *problem.alternatives) if fix.value]


def test_service_without_models_can_be_given_some() -> None:
    problem = refused(
        "{gpu: L4-24GB, nodes: 1}", f"{{source: {SMALL}, context: 4096}}", "services: {inference: {upgrade: None}}"
    )
    assert [(fix.path, fix.value) for fix in problem.alternatives] == [("models.model.service", "inference")]


def test_missing_measurements_are_a_problem_of_the_key_that_names_them(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "fleet: one\nmeasurements: none.yaml\npools: {gpu: {gpu: L4-24GB, nodes: 1}}\n"
        f"models: {{a: {{source: {SMALL}}}}}\n"
    )
    with pytest.raises(FleetError) as found:
        load_fleet(fleet)
    (problem,) = found.value.problems
    assert (problem.file, problem.line, problem.path) == (str(fleet), 2, "measurements")
    assert "none.yaml: no such file" in problem.message


def test_utf_16_is_recognized_by_its_byte_order_mark(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_bytes("fleet: one\n".encode("utf-16"))
    with pytest.raises(FleetError, match="iconv -f UTF-16 -t UTF-8"):
        load_fleet(fleet)


def test_proposed_context_is_the_longest_that_the_planner_accepts() -> None:
    pool, model = "{gpu: A100-SXM-40GB, nodes: 1}", f"{{source: {SMALL}, context: %d, gpuFraction: 0.5}}"
    fixes = {fix.path: fix for fix in refused(pool, model % 16384).alternatives}
    context = fixes["models.model.context"]
    assert context.why.startswith("the longest that fits, without CUDA graphs; with them ")
    block = 16
    assert f"context: {context.value} " in fixes_of(pool, model % (context.value + block))
    plan(f"fleet: one\npools: {{pool: {pool}}}\nmodels:\n  model: {model % context.value}\n")


def fixes_of(pool: str, model: str) -> str:
    problem = refused(pool, model)
    return "\n".join(map(str, (problem.fix, *problem.alternatives)))


def test_nodes_are_proposed_for_all_models_without_room() -> None:
    models = "".join(f"  m{number}: {{source: {SMALL}, context: 4096}}\n" for number in range(4))
    with pytest.raises(FleetError) as found:
        plan(f"fleet: a\npools: {{gpu: {{gpu: L4-24GB, nodes: 1}}}}\nmodels:\n{models}")
    assert {problem.fix_text.strip() for problem in found.value.problems} == {
        "pools:\n  gpu:\n    nodes: 4   # 3 more nodes in pool `gpu`, for 3 models"
    }


def test_nodes_for_several_models_hold_the_replicas_of_all() -> None:
    models = "".join(f"  m{number}: {{source: {SMALL}, context: 4096, replicas: 4}}\n" for number in range(2))
    with pytest.raises(FleetError) as found:
        plan(f"fleet: a\npools: {{gpu: {{gpu: L4-24GB, nodes: 3}}}}\nmodels:\n{models}")
    assert {problem.fix.value for problem in found.value.problems} == {8}


@pytest.mark.parametrize(
    ("pool", "pin", "right"),
    [
        ("{gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 4}", "{data: 8}", ({"tensor": 1, "data": 4}, 2)),
        ("{gpu: H100-SXM-80GB, nodes: 2}", "{data: 2}", ({"tensor": 1}, 2)),
    ],
)
def test_ranks_over_several_hosts_become_replicas_with_all_gpus(pool: str, pin: str, right: tuple[object, int]) -> None:
    problem = refused(pool, f"{{source: Qwen/Qwen3-30B-A3B, context: 4096, parallelism: {pin}}}")
    assert (problem.fix.value["parallelism"], problem.fix.value["replicas"]) == right


def test_pin_that_no_smaller_one_replaces_is_removed() -> None:
    problem = refused(
        "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 2, nodeSelector: {pool: p}, sharing: {shares: 2}}",
        f"{{source: {SMALL}, context: 4096, parallelism: {{tensor: 2}}}}",
    )
    assert (problem.fix.is_removal, problem.fix.path) == (True, "models.model.parallelism")


def test_one_pool_in_pools_becomes_the_pool_of_the_model() -> None:
    problem = refused("{gpu: L4-24GB, nodes: 1}", f"{{source: {SMALL}, context: 4096, pools: [pool]}}")
    assert str(problem.fix) == "pool: pool   # instead of `pools`"


def test_pool_without_nodes_keeps_what_it_has_in_the_fix() -> None:
    problem = refused("{gpu: H100-SXM-80GB, gpusPerNode: 8}", f"{{source: {SMALL}, context: 4096}}")
    assert problem.fix.value == {"gpu": "H100-SXM-80GB", "gpusPerNode": 8, "nodes": 1}


def test_path_of_a_fix_has_a_long_name_whole() -> None:
    name = "m" * 70
    pools, model = "{gpu: {gpu: L4-24GB, nodes: 1}}", f"{{source: {SMALL}, context: -1}}"
    with pytest.raises(FleetError) as found:
        plan(f"fleet: a\npools: {pools}\nmodels: {{{name}: {model}}}\n")
    (problem,) = found.value.problems
    assert isinstance(problem.fix, Fix)
    assert problem.fix.path == f"models.{name}.context"


def test_small_shortage_of_memory_is_said_in_mebibytes() -> None:
    pool = "{gpu: A100-SXM-40GB, nodes: 1, gpusPerNode: 8}"
    problem = refused(pool, f"{{source: {SMALL}, context: 16400, gpuFraction: 0.5}}")
    assert re.search(r": \d+ MiB of memory are missing per GPU", problem.message)
