"""LoRA adapters in the fleet file: names, sources, memory, and who may call them."""

import re
from pathlib import Path

import pytest

from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.planner.memory.adapter_slots import AdapterSlots, count_adapter_bytes
from rayhelm.planner.shape import ReplicaShape
from shared.fleets import plan
from shared.small_fleet import problems, the_problem

PIN = "revision: 0123456789abcdef0123456789abcdef01234567"
LEGAL = f"legal: {{source: acme/legal-lora, {PIN}}}"
IMAGE = "image: {repository: registry.example/ray-vllm, tag: 2.60.0-ours, includesRayhelm: true}"


def fleet(adapters: str = LEGAL, more: str = "", model: str = "", image: str = IMAGE) -> str:
    return f"""\
fleet: adapted
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, {image}}}}}
pools: {{gpu: {{gpu: L4-24GB, nodes: 4}}}}
models:
  chat: {{source: Qwen/Qwen2.5-7B-Instruct, context: 4096, adapters: {{{adapters}}}{model}}}
  embed: {{source: BAAI/bge-large-en-v1.5, task: embed}}
{more}"""


def test_adapters_become_entries_of_their_model_in_the_values() -> None:
    text = fleet(f"{LEGAL}, acme/sales: {{source: acme/sales-lora, {PIN}, rank: 20, baseModel: Qwen/Qwen2.5-7B}}")
    model = build_ray_service_values(plan(text))["chat"].serve.applications["chat"].models["chat"]
    assert (model.lora.slots, model.lora.max_rank) == (2, 32)
    assert model.lora.adapters["legal"].base_model == ""
    assert model.lora.adapters["acme/sales"].base_model == "Qwen/Qwen2.5-7B"


def test_added_adapter_changes_no_other_service() -> None:
    before, after = fleet(), fleet(f"{LEGAL}, sales: {{source: acme/sales-lora, {PIN}}}")
    old, new = (build_ray_service_values(plan(text)) for text in (before, after))
    assert old["embed"] == new["embed"]
    assert old["chat"] != new["chat"]


def test_gateway_routes_an_adapter_to_its_model_for_its_tenants_only() -> None:
    text = fleet(more="tenants:\n  a: {models: [chat, embed, legal]}\n  b: {models: [chat]}\n  c: {models: [legal]}\n")
    planned = plan(text)
    values = build_gateways(planned, build_ray_service_values(planned))["main"]
    assert values.models["legal"].versions["stable"].endpoints == values.models["chat"].versions["stable"].endpoints
    assert values.models["legal"].versions["stable"].route_prefix == "/chat"
    assert {name: tenant.models for name, tenant in values.tenants.items()} == {
        "a": ["chat", "embed", "legal"],
        "b": ["chat"],
        "c": ["legal"],
    }


def test_plan_warns_of_an_adapter_that_no_tenant_may_call() -> None:
    assert any(
        "adapter `legal`" in warning for warning in plan(fleet(more="tenants: {a: {models: [chat, embed]}}\n")).warnings
    )


def test_slots_of_adapters_take_memory_from_the_cache() -> None:
    without, small, large = (
        plan(fleet(adapters)).models["chat"]
        for adapters in ("", LEGAL, f"legal: {{source: acme/legal-lora, {PIN}, rank: 128}}")
    )
    assert without.adapter_slots == 0
    assert (small.adapter_slots, small.adapter_rank, large.adapter_rank) == (1, 16, 128)
    tokens = [model.kv_cache_tokens or 0 for model in (without, small, large)]
    assert tokens[0] > tokens[1] > tokens[2]
    reason = next(reason for reason in large.reasons if reason.decision == "adapter_slots")
    assert reason.numbers["adapter_slots_gib"] == pytest.approx(0.75, abs=0.1)


def test_pinned_slots_replace_one_for_each_adapter() -> None:
    model = plan(fleet(f"{LEGAL}, sales: {{source: acme/sales-lora, {PIN}}}", model=", adapterSlots: 1")).models["chat"]
    assert model.adapter_slots == 1
    assert "1 more than slots" in next(reason.because for reason in model.reasons if reason.decision == "adapter_slots")


def test_adapter_slots_have_the_shapes_of_vllm() -> None:
    model = load_catalog().model("meta-llama/Llama-3.2-1B-Instruct")
    hidden, wide, keys, vocabulary = 2048, 8192, 512, 128256
    layer = 2 * hidden + 2 * (hidden + keys) + 2 * hidden + 2 * (hidden + wide) + (wide + hidden)
    (whole,) = count_adapter_bytes(model, ReplicaShape(), AdapterSlots(2, 16))
    assert whole == 2 * 16 * 2 * (16 * layer + 2 * (vocabulary + hidden))
    # Tensor parallelism divides the outputs of q, k, v, gate and up, and the inputs of o and down.
    halves = 3 * hidden + (hidden + 2 * keys) / 2 + hidden + hidden / 2 + 2 * hidden + wide + wide / 2 + hidden
    (half,) = count_adapter_bytes(model, ReplicaShape(2), AdapterSlots(2, 16))
    assert half == 2 * 16 * 2 * (16 * halves + 2 * (vocabulary + hidden))


def test_example_of_the_documentation_plans() -> None:
    page = Path(__file__).parents[2] / "docs/tasks/serve-lora-adapters.md"
    (example,) = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    planned = plan(f"fleet: example\npools: {{gpu: {{gpu: L4-24GB, nodes: 2}}}}\n{example}")
    assert (planned.models["chat"].adapter_slots, planned.models["chat"].adapter_rank) == (2, 32)
    assert planned.gateways["main"].models == ("chat", "legal", "sales")


@pytest.mark.parametrize(
    ("adapters", "says"),
    [
        ("legal: {source: acme/legal-lora}", "has no `revision`"),
        ("legal: {source: acme/legal-lora, revision: main}", "revision"),
        ("legal: {source: s3://bucket/legal}", "no hub id and no absolute path"),
        ("legal: {source: ../legal}", "no hub id and no absolute path"),
        ("legal: {source: /models/../etc}", "no hub id and no absolute path"),
        (f"legal: {{source: /models/legal, {PIN}}}", "a path has no `revision`"),
        (f"legal: {{source: acme/legal-lora, {PIN}, rank: 513}}", "512"),
        (f"legal: {{source: acme/legal-lora, {PIN}, rank: 0}}", "1"),
        (f"chat: {{source: acme/legal-lora, {PIN}}}", "also the name of a model"),
        (f"'chat:legal': {{source: acme/legal-lora, {PIN}}}", "chat:legal"),
    ],
)
def test_wrong_adapter_is_refused_with_a_fix(adapters: str, says: str) -> None:
    problem = the_problem(fleet(adapters))
    assert says in f"{problem.path} {problem.message}"
    assert problem.line == 5


def test_second_adapter_of_a_name_is_refused() -> None:
    text = fleet().replace(
        "embed: {source", f"other: {{source: Qwen/Qwen2.5-7B-Instruct, adapters: {{{LEGAL}}}}}\n  embed: {{source"
    )
    assert "model `chat` already has an adapter `legal`" in the_problem(text).message


@pytest.mark.parametrize("task", ["embed", "rerank", "transcribe"])
def test_adapters_are_refused_for_other_tasks_than_chat(task: str) -> None:
    text = fleet().replace("task: embed", f"task: {task}, adapters: {{sales: {{source: /models/sales}}}}")
    assert "cannot have adapters" in the_problem(text).message


def test_adapters_are_refused_for_a_model_with_the_name_of_another() -> None:
    text = fleet("").replace(
        "embed: {source: BAAI/bge-large-en-v1.5, task: embed}",
        f"more: {{source: Qwen/Qwen2.5-7B-Instruct, servedAs: {{model: chat}}, adapters: {{{LEGAL}}}}}",
    )
    assert "give it to `chat`" in the_problem(text).message


def test_adapters_are_refused_for_data_parallel_ranks() -> None:
    text = fleet(model=", parallelism: {tensor: 1, data: 2, expert: true}")
    assert any("not tested with data parallel ranks" in problem.message for problem in problems(text))


def test_slots_without_adapters_are_refused() -> None:
    assert "no `adapters`" in the_problem(fleet("", model=", adapterSlots: 2")).message


def test_unknown_name_of_a_tenant_gets_the_nearest_adapter() -> None:
    problem = the_problem(fleet(more="tenants: {a: {models: [chat, embed, legl]}}\n"))
    assert "legal" in str(problem.fix)


def test_pinned_version_of_an_adapter_is_checked() -> None:
    more = "tenants: {a: {models: [chat, embed, legal], pinnedVersions: {legal: next}}}\n"
    (problem,) = problems(fleet(more=more))
    assert "`legal` has no version `next`" in problem.message


@pytest.mark.parametrize("image", ["image: {repository: registry.example/ray-vllm, tag: 2.60.0}", "kuberay: 1.7.0"])
def test_adapters_need_rayhelm_in_the_image(image: str) -> None:
    text = fleet(image=image)
    with pytest.raises(FleetError, match="adapters need the ingress of rayhelm") as caught:
        build_ray_service_values(plan(text))
    assert "includesRayhelm: true" in str(caught.value.problems[0].fix)
