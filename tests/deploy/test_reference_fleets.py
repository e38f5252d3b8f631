"""The fleets in values/: what they promise, and that what is committed is what rayhelm writes today."""

from functools import cache
from pathlib import Path

import pytest

from rayhelm.deploy.render.files import Rendered, build_files, render_fleet
from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.planner import plan_fleet

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))


@cache
def rendered(name: str) -> Rendered:
    return render_fleet(VALUES / name / "fleet.yaml")


def without(name: str, *lines: str) -> dict[str, ModelPlan]:
    """The plan of a reference fleet from which lines (those that begin so) are taken."""
    text = (VALUES / name / "fleet.yaml").read_text()
    kept = [line for line in text.splitlines() if not line.strip().startswith(lines)]
    assert len(kept) < len(text.splitlines())
    return plan_fleet(parse_fleet(parse_document("\n".join(kept), "fleet.yaml"))).models


def test_reference_fleets_are_complete() -> None:
    assert FLEETS == [
        "expert-parallel",
        "homelab",
        "multi-node",
        "prefill-decode",
        "shared-gpus",
        "single-gpu",
        "three-tiers",
        "two-clusters",
        "two-workstations",
    ]


@pytest.mark.parametrize("name", FLEETS)
def test_committed_files_are_what_render_writes(name: str) -> None:
    files = build_files(rendered(name))
    for path, text in files.items():
        assert (VALUES / name / path).read_text() == text, f"stale: rayhelm render values/{name}"
    there = {str(path.relative_to(VALUES / name)) for path in (VALUES / name).rglob("*.yaml")} - {"fleet.yaml"}
    assert there == {path for path in files if path.endswith(".yaml")}


@pytest.mark.parametrize("name", FLEETS)
def test_reference_plans_are_not_tight_and_meet_their_slo(name: str) -> None:
    for model in rendered(name).plan.models.values():
        assert not model.tight
        assert not [warning for warning in model.warnings if "out of reach" in warning]


@pytest.mark.parametrize("name", FLEETS)
def test_values_have_the_gpus_of_the_plan(name: str) -> None:
    """The pods at the planned load have every planned GPU or part, and at most one more for fractions."""
    for service, values in rendered(name).values.items():
        gpus = sum(group.max_replicas * group.gpu.count for group in values.worker_groups.values())
        planned = sum(model.gpus / _part(model) for model in rendered(name).plan.of_service(service))
        assert planned <= gpus < planned + len(values.worker_groups)


def _part(model: ModelPlan) -> float:
    """Part of a GPU that the pod of one replica requests."""
    return load_catalog().gpu(model.gpu).part if "/" in model.gpu else 1.0


@pytest.mark.parametrize("name", FLEETS)
def test_values_have_the_split_of_the_plan(name: str) -> None:
    for service, values in rendered(name).values.items():
        plans = {model.served_as: model for model in rendered(name).plan.of_service(service)}
        for application in values.serve.applications.values():
            for model, value in application.models.items():
                plan, engine = plans[model], value.engine
                assert engine.tensor_parallel_size == plan.tensor_parallel_size
                assert engine.pipeline_parallel_size == plan.pipeline_parallel_size
                assert (engine.max_num_seqs, engine.max_num_batched_tokens) == (
                    plan.max_num_seqs,
                    plan.max_num_batched_tokens,
                )
                assert value.gpu_fraction == plan.gpu_fraction


def test_single_gpu_plans_one_model_on_one_gpu() -> None:
    (model,) = rendered("single-gpu").plan.models.values()
    assert (model.gpus, model.replicas, model.pinned) == (1, 1, ())


def test_multi_node_pins_the_405b_to_four_nodes() -> None:
    plan = rendered("multi-node").plan
    big, middle = plan.models["llama-405b"], plan.models["llama-70b"]
    assert (big.tensor_parallel_size, big.pipeline_parallel_size, big.gpus) == (8, 4, 32)
    assert (middle.tensor_parallel_size, middle.pipeline_parallel_size) == (4, 1)
    assert big.pinned == ("parallelism",)


def test_405b_uses_half_the_nodes_without_its_pin() -> None:
    model = without("multi-node", "parallelism:")["llama-405b"]
    assert (model.tensor_parallel_size, model.pipeline_parallel_size, model.gpus) == (8, 2, 16)
    assert model.price_per_hour == pytest.approx(rendered("multi-node").plan.models["llama-405b"].price_per_hour / 2)


def test_two_workstations_pin_nothing() -> None:
    (model,) = rendered("two-workstations").plan.models.values()
    assert model.pinned == ()
    assert (model.tensor_parallel_size, model.pipeline_parallel_size) == (1, 2)
    assert model.gpu == "RTX-A5000-24GB+RTX-A4000-16GB"


def test_homelab_plans_five_tasks_on_four_gpus_of_three_vendors() -> None:
    plan = rendered("homelab").plan
    assert [model.task for model in plan.models.values()] == ["embed", "chat", "rerank", "speak", "transcribe"]
    assert list(plan.services) == ["ai-inference"]
    assert all(model.gpu_fraction < 1 for model in plan.models.values())
    assert all(pool.used <= 1 for pool in plan.pools.values())
    vendors = {group.gpu.vendor for group in rendered("homelab").values["ai-inference"].worker_groups.values()}
    assert vendors == {"nvidia", "amd", "intel"}


def test_homelab_plan_names_what_was_not_checked() -> None:
    embeddings = rendered("homelab").plan.models["embeddings"]
    assert any("whether the model fits was not checked" in gap for gap in embeddings.unknown)


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("gpuFraction: 0.95", {"llm": ("halo", 0.45)}),
        ("gpuFraction: 0.4", "`tts` needs 1 replica with 1 "),
        ("pool: igpu", "`embeddings` needs 1 replica with 0.8 Arc-A770-16GB"),
    ],
)
def test_each_pin_of_the_homelab_has_an_effect(line: str, changes: dict[str, tuple[str, float]] | str) -> None:
    if isinstance(changes, str):
        with pytest.raises(FleetError, match=changes):
            without("homelab", line)
        return
    pinned, free = rendered("homelab").plan.models, without("homelab", line)
    differs = {
        name: (model.pool, model.gpu_fraction)
        for name, model in free.items()
        if (model.pool, model.gpu_fraction) != (pinned[name].pool, pinned[name].gpu_fraction)
    }
    assert differs == changes


def test_homelab_aliases_are_the_names_of_kserve() -> None:
    aliases = rendered("homelab").values["ai-inference"].aliases
    assert {name: alias.namespace for name, alias in aliases.items()} == {
        f"{name}-predictor": "ai-ml" for name in ("llm", "whisper", "tts", "embeddings", "reranker")
    }


def test_each_tier_gets_its_own_split() -> None:
    models = rendered("three-tiers").plan.models
    big, middle, small = models["llama-405b"], models["qwen3-32b"], models["qwen3-8b"]
    assert (big.pool, big.tensor_parallel_size) == ("dc", 8)
    assert (middle.pool, middle.nodes_per_replica) == ("workstations", 1)
    assert (small.pool, small.tensor_parallel_size * small.pipeline_parallel_size) == ("edge-4090", 1)
    assert small.replicas > 1
    assert small.routing == "prefix-affinity"
    assert small.cluster == "edge"
    assert [name for name, model in models.items() if model.pinned] == ["qwen3-32b-dc"], "and a second place of one"


def test_two_pools_serve_one_name_weighted_by_throughput() -> None:
    (version,) = rendered("three-tiers").plan.gateways["main"].versions["qwen3-32b"].values()
    assert set(version.models) == {"qwen3-32b", "qwen3-32b-dc"}
    assert version.models["qwen3-32b"] < version.models["qwen3-32b-dc"] == 100, "two A6000 are less than an H100"


def test_edge_values_are_for_its_older_operator() -> None:
    values = rendered("three-tiers").values
    assert values["qwen3-8b"].kuberay.version == "1.6.2"
    assert values["llama-405b"].kuberay.version == "1.7.0"
