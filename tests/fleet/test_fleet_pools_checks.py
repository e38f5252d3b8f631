"""Models with `pools`: checks of clusters, weights at the gateway, overrides, and what the plan says."""

import pytest

from planner.test_fleet_pools import BASE, CIDRS, LOAD, SIX, TENANT, fleet, refuse, shapes
from rayhelm.check.lint.preview import preview_problems
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import FleetError
from rayhelm.planner.plan import ModelPlan
from shared.fleets import plan
from shared.small_fleet import problems

TWO_CLUSTERS = """\
fleet: two
clusters:
  eu: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true, gateway: {allowedClients: [web]%s}}
  us: {apiServer: {cidrs: [10.1.0.1/32]}, gateway: {allowedClients: [web]%s}}
pools:
  eu-l4: {gpu: L4-24GB, nodes: 4, cluster: eu}
  eu-a: {gpu: RTX-A6000-48GB, nodes: 4, cluster: eu}
  us-l4: {gpu: L4-24GB, nodes: 6, cluster: us}
tenants: {t: {models: [q]}}
models:
"""
REMOTE = ", remotes: {%s: {host: %s.example.com, certificateAuthority: {configMap: ca}, cidrs: [203.0.113.10/32]}}"
APART = TWO_CLUSTERS % ("", "")
JOINED = TWO_CLUSTERS % (REMOTE % ("us", "us"), REMOTE % ("eu", "eu"))
SOURCE = "source: Qwen/Qwen3-4B, context: 8192"


def weights(text: str) -> dict[str, int]:
    return dict(plan(text).gateways["main"].versions["chat"]["stable"].models)


def reason(found: ModelPlan, decision: str) -> str:
    return next(each.because for each in found.reasons if each.decision == decision)


# -- clusters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["pool: eu-l4", "pools: [eu-l4, eu-a]"])
def test_version_on_a_cluster_without_gateway_to_it_is_refused(key: str) -> None:
    text = f"{APART}  q: {{{SOURCE}, {key}}}\n"
    text += f"  r: {{{SOURCE}, pool: us-l4, servedAs: {{model: q, version: canary, weight: 10}}}}\n"
    (problem,) = problems(text)
    assert problem.path == "models.r.pool"
    assert "it serves `q` on cluster `us`" in problem.message


def test_model_with_pools_spills_to_another_cluster() -> None:
    text = f"{JOINED}  q: {{{SOURCE}, pools: [eu-l4, eu-a], spillAbove: 8}}\n"
    text += f"  q-us: {{{SOURCE}, pool: us-l4, servedAs: {{model: q}}}}\n"
    found = plan(text)
    assert {name: model.cluster for name, model in found.models.items()} == {"q": "eu", "q-eu-a": "eu", "q-us": "us"}


def test_service_of_pools_of_another_cluster_is_refused() -> None:
    text = f"{APART}  q: {{{SOURCE}, pools: [eu-l4, eu-a], service: s}}\n  r: {{{SOURCE}, pool: us-l4, service: s}}\n"
    (problem,) = problems(text.replace("models: [q]", "models: [q, r]"))
    assert "its service `s` is on clusters `eu` and `us`" in problem.message


# -- weights at the gateway --------------------------------------------------------------------------------------------


def test_weights_are_those_of_the_replicas_without_traffic() -> None:
    found = plan(fleet(f"{SIX}, pools: [a, b]"))
    share = found.models["chat-b"].load_share / found.models["chat"].load_share
    assert weights(fleet(f"{SIX}, pools: [a, b]", CIDRS + TENANT)) == {"chat": 100, "chat-b": round(100 * share)}
    assert share < 0.6


def test_weights_of_embedding_models_are_those_of_the_load() -> None:
    text = fleet(f"{SIX}, pools: [a, b], task: embed", CIDRS + TENANT).replace("Qwen/Qwen3-8B", "BAAI/bge-m3")
    text = text.replace("context: 4096", "context: 2048")
    found = weights(text)
    assert found["chat"] == 100
    assert found["chat-b"] < 60


def test_weights_of_models_without_pools_stay_equal_without_traffic() -> None:
    more = "  more: {source: Qwen/Qwen3-8B, context: 4096, pool: b, servedAs: {model: chat}}\n"
    assert weights(fleet("replicas: 4, pool: a", f"{more}{CIDRS}{TENANT}")) == {"chat": 100, "more": 100}


# -- errors ------------------------------------------------------------------------------------------------------------


def test_problem_of_a_model_with_pools_is_reported_once() -> None:
    assert refuse(fleet("pools: [a, b], task: embed")).path == "models.chat.task"


def test_unpinned_model_with_pools_is_reported_once() -> None:
    text = fleet("pools: [a, b]", CIDRS)
    found = [problem.path for problem in preview_problems(plan(text))]
    assert found == ["models.chat"]


def test_refused_override_names_the_model_of_the_file() -> None:
    values = "{serve: {applications: {chat: {models: {chat: {engine: {seed: 1}}}}}}}"
    text = fleet(f"{SIX}, pools: [a, b]", f"{CIDRS}{TENANT}services: {{chat: {{tenant: team, values: {values}}}}}\n")
    with pytest.raises(FleetError) as error:
        build_ray_service_values(plan(text))
    assert all("Use `models.chat.engine`" in problem.message for problem in error.value.problems)


def test_pins_that_no_pool_can_hold_name_the_model_of_the_file() -> None:
    with pytest.raises(FleetError) as error:
        plan(fleet("pools: [a, b], parallelism: {tensor: 8}"))
    assert all("model `chat`: no pool has the hosts" in problem.message for problem in error.value.problems)


def test_spare_replica_without_room_is_named_in_the_refusal() -> None:
    base = BASE.replace("L40S-48GB, nodes: 4", "L40S-48GB, nodes: 1")
    problem = refuse(fleet(f"{LOAD % 3}, slo: {{capacityAvailability: 0.9999}}, pools: [a, b]", base=base))
    assert "It has room for 1 in all, and `slo.capacityAvailability` needs 1 more as spare" in problem.message


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_reason_has_no_replica_counts_where_the_split_is_chosen_again() -> None:
    base = """\
fleet: f
pools:
  a: {gpu: A100-SXM-80GB, nodes: 3, gpusPerNode: 2, price: 1 USD/h}
  b: {gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 4, price: 1 USD/h}
models:
"""
    found = plan(fleet(LOAD.replace("1000", "3000") % 40 + ", pools: [a, b]", base=base)).models["chat"]
    because = reason(found, "pool")
    assert "replicas" not in because
    assert f"it has {found.load_share:.1%} of the requests, and `chat-b` has the rest" in because


def test_reason_of_three_pools_has_the_plural() -> None:
    base = BASE.replace("models", "  c: {gpu: L4-24GB, nodes: 4, price: 0.5 USD/h}\nmodels")
    found = plan(fleet("replicas: 11, pools: [a, b, c]", base=base)).models["chat"]
    assert "`chat-b` and `chat-c` have the others" in reason(found, "pool")


def test_model_pinned_to_one_pool_is_placed_before_one_with_pools() -> None:
    base = BASE.replace("RTX-A6000-48GB, nodes: 4", "RTX-A6000-48GB, nodes: 2")
    small = "  small: {source: Qwen/Qwen3-4B, context: 4096, replicas: 2, pool: a}\n"
    found = plan(fleet("replicas: 4, pools: [a, b]", small, base=base))
    assert shapes(found) == {"chat": ("a", 2), "chat-b": ("b", 2), "small": ("a", 2)}


# -- overrides ---------------------------------------------------------------------------------------------------------


def test_worker_groups_of_a_service_stay_with_its_first_pool() -> None:
    values = "{workerGroups: {a: {env: {A: '1'}}}, serve: {requestTimeoutSeconds: 1700}}"
    text = fleet(f"{SIX}, pools: [a, b]", f"{CIDRS}{TENANT}services: {{chat: {{tenant: team, values: {values}}}}}\n")
    found = build_ray_service_values(plan(text))
    assert {name: [group.env for group in each.worker_groups.values()] for name, each in found.items()} == {
        "chat": [{"A": "1"}],
        "chat-b": [{}],
    }
    assert {each.serve.request_timeout_seconds for each in found.values()} == {1700}


def test_applications_of_other_models_stay_with_the_first_service() -> None:
    other = "  other: {source: Qwen/Qwen3-4B, context: 4096, service: shared, replicas: 1}\n"
    apps = "{serve: {applications: {other: {models: {other: {x: 1}}}, chat: {models: {chat: {y: 1}}}}}}"
    tenant = TENANT.replace("[chat]", "[chat, other]")
    more = f"{other}{CIDRS}{tenant}services: {{shared: {{tenant: team, weightsSize: 100GiB, values: {apps}}}}}\n"
    found = plan(fleet("replicas: 4, pools: [a, b], service: shared", more)).declared.services
    assert sorted(found["shared"].values["serve"]["applications"]) == ["chat", "other"]
    assert found["chat-b"].values == {"serve": {"applications": {"chat": {"models": {"chat": {"y": 1}}}}}}


def test_list_with_a_wrong_item_is_not_called_too_short() -> None:
    (found,) = problems(f"{APART}  q: {{{SOURCE}, pools: [eu-l4, [eu-a]]}}\n")
    assert found.message == "must be a string, not a list"
