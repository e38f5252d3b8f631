"""Further names of models in the fleet file: who may use them, what routes them, and what is refused."""

import pytest

from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.errors import Fix, FleetError
from shared.fleets import plan
from shared.small_fleet import the_problem

IMAGE = "{repository: registry.example/team/ray-vllm, tag: 2.60.0-ours, includesRayhelm: true}"


def fleet(aliases: str = "[gpt-4o-mini, Qwen/Qwen3-8B]", model: str = "", more: str = "", tenant: str = "chat") -> str:
    return f"""\
fleet: small
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, image: {IMAGE}, gateway: {{allowedClients: [web]}}}}}}
pools:
  gpu: {{gpu: L4-24GB, nodes: 8}}
tenants: {{a: {{models: [{tenant}]}}}}
models:
  chat: {{source: Qwen/Qwen2.5-7B-Instruct, context: 4096, aliases: {aliases}{model}}}
{more}"""


def gateway(text: str) -> GatewayValues:
    planned = plan(text)
    return build_gateways(planned, build_ray_service_values(planned))["main"]


def test_aliases_reach_the_gateway_and_the_ingress_of_the_model() -> None:
    names = ["gpt-4o-mini", "Qwen/Qwen3-8B"]
    values = gateway(fleet())
    assert (values.models["chat"].aliases, list(values.models), values.tenants["a"].models) == (
        names,
        ["chat"],
        ["chat"],
    )
    text = fleet()
    service = build_ray_service_values(plan(text))["chat"]
    assert service.serve.applications["chat"].models["chat"].aliases == names


def test_every_placement_of_a_name_accepts_its_aliases() -> None:
    text = fleet(more="  big: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, servedAs: {model: chat}}\n")
    values = build_ray_service_values(plan(text))
    assert values["big"].serve.applications["chat"].models["chat"].aliases == ["gpt-4o-mini", "Qwen/Qwen3-8B"]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (fleet("[chat]"), "models.chat.aliases[0]", "also the name of a model"),
        (fleet("[small, small]"), "models.chat.aliases[1]", "already an alias of `chat`"),
        (
            fleet("[small]", more="  other: {source: Qwen/Qwen3-8B, aliases: [small]}\n", tenant="chat, other"),
            "models.other.aliases[0]",
            "already an alias of `chat`",
        ),
        (
            fleet("[legal]", ", adapters: {legal: {source: /models/legal}}"),
            "models.chat.aliases[0]",
            "also the name of an adapter",
        ),
        (fleet(model=", parallelism: {data: 2}"), "models.chat.aliases", "data parallel ranks"),
        (fleet(model=", parallelism: {prefillDecode: true}"), "models.chat.aliases", "or `parallelism.prefillDecode`"),
        (fleet(model=", parallelism: {prefill: 1, decode: 1}"), "models.chat.aliases", "or `parallelism.prefill`"),
        (
            fleet(
                more="  b: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, servedAs: {model: chat},"
                " parallelism: {prefillDecode: true}}\n"
            ),
            "models.chat.aliases",
            "or `parallelism.prefillDecode` of `b`",
        ),
        (
            fleet("[]", more="  b: {source: Qwen/Qwen2.5-7B-Instruct, servedAs: {model: chat}, aliases: [x]}\n"),
            "models.b.aliases",
            "an alias belongs to the name that they call",
        ),
        (
            fleet(more="  tts: {source: microsoft/speecht5_tts, task: speak, aliases: [tts-1]}\n", tenant="chat, tts"),
            "models.tts.aliases",
            "an application of its own",
        ),
        (fleet(tenant="gpt-4o-mini"), "tenants.a.models[0]", "is an alias of `chat`"),
    ],
)
def test_wrong_alias_is_refused(text: str, path: str, message: str) -> None:
    problem = the_problem(text)
    assert problem.path == path
    assert message in problem.message


@pytest.mark.parametrize("alias", ["a b", "/x", "x//y", "x" * 97, "no"])
def test_alias_that_no_client_can_send_is_refused(alias: str) -> None:
    assert the_problem(fleet(f'["{alias}"]')).path == "models.chat.aliases[0]"


@pytest.mark.parametrize(
    ("alias", "fix"), [("/gpt", "gpt"), ("GPT-4o mini", "GPT-4o-mini"), ("a//b", "a/b"), ("//", "my-name")]
)
def test_refused_alias_keeps_its_capitals_and_slashes_in_the_fix(alias: str, fix: str) -> None:
    problem = the_problem(fleet(f'["{alias}"]'))
    assert "cannot be a name of a model" in problem.message
    assert isinstance(problem.fix, Fix)
    assert problem.fix.value == [fix]
    assert "Kubernetes" not in problem.fix_text


def test_image_without_rayhelm_cannot_serve_aliases() -> None:
    text = fleet().replace(f"image: {IMAGE}, ", "")
    with pytest.raises(FleetError) as caught:
        build_ray_service_values(plan(text))
    (problem,) = caught.value.problems
    assert (problem.path, "aliases need the ingress of rayhelm" in problem.message) == ("models.chat.aliases", True)
