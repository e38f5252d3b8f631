"""What `rayhelm diff` says about an edit of a fleet file."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rayhelm.check.diff.access import list_access_changes
from rayhelm.check.diff.advice import advise_fleet
from rayhelm.check.diff.compare import compare_sides
from rayhelm.check.diff.immutable import list_refused_changes
from rayhelm.check.diff.page import format_markdown
from rayhelm.check.diff.read_fleet import build_side
from rayhelm.check.diff.report import DiffReport, ModelReport, ReleaseReport
from rayhelm.check.diff.requests import describe_requests, estimate_seconds, load_measured_failures
from rayhelm.check.diff.side import Side
from rayhelm.check.diff.waves import GpuChange, Limit, order_waves
from rayhelm.deploy.render.files import render_plan
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

FLEET = """\
fleet: small
clusters:
  main:
    kuberay: 1.7.0
    apiServer: {cidrs: [10.0.0.1/32]}
    weights: {storageClass: nfs}
    gateway: {replicas: 1, allowedClients: [apps]}
pools:
  gpu: {gpu: L4-24GB, nodes: 4, gpusPerNode: 1, price: 1.00 USD/h}
models:
  chat: {source: Qwen/Qwen3-8B, unpinnedReason: only rendered, context: 8192, replicas: {max: 2}}
  embed: {source: BAAI/bge-m3, unpinnedReason: only rendered, task: embed}
tenants:
  apps: {models: [chat, embed], requestsPerMinute: 60}
"""

GPU = "nvidia.com/gpu"
POOL: Limit = ("pool", "main", "a", GPU)
QUOTA: Limit = ("namespace", "main", "models", GPU)


def side(text: str, label: str = "fleet.yaml") -> Side:
    return build_side(label, render_plan(plan_fleet(load(text))))


def diff(*edits: tuple[str, str], before: str = FLEET) -> DiffReport:
    after = before
    for old, new in edits:
        assert old in after
        after = after.replace(old, new)
    return compare_sides(side(before, "old"), side(after, "new"))


def of(report: DiffReport, name: str) -> ReleaseReport:
    return next(each for each in report.releases if each.chart == "ray-service" and each.release == name)


def test_diff_of_equal_fleets_has_no_release() -> None:
    report = diff()
    assert (report.releases, report.dangers) == ((), ())
    assert report.unchanged == 4


@pytest.mark.parametrize(
    ("edit", "effect", "dangers"),
    [
        (("context: 8192", "context: 4096"), "serve config", {"requests-at-risk"}),
        (("nodes: 4, ", "nodes: 4, nodeSelector: {zone: a}, "), "new cluster", {"new-cluster"}),
        (("max: 2", "max: 3"), "replicas", set()),
        (("replicas: {max: 2}", "replicas: {max: 1}"), "new cluster", {"new-cluster"}),  # topologySpreadConstraints
    ],
)
def test_diff_names_what_happens_to_a_service(edit: tuple[str, str], effect: str, dangers: set[str]) -> None:
    report = diff(edit)
    assert of(report, "chat").effect == effect
    assert set(of(report, "chat").dangers) == dangers


def test_diff_names_a_change_of_pods_that_strategy_none_holds_back() -> None:
    before = FLEET.replace("nodes: 4", "nodes: 2").replace("max: 2", "max: 1")
    report = diff(("nodes: 2, ", "nodes: 2, nodeSelector: {zone: a}, "), before=before)
    assert of(report, "chat").effect == "held back"
    assert report.dangers == ("held-back",)
    assert any("recreate the service" in text for text in of(report, "chat").advice)


def test_diff_says_that_kueue_admits_no_second_cluster() -> None:
    queue = "services:\n  chat: {values: {labels: {kueue.x-k8s.io/queue-name: batch}}}\nmodels:"
    before = FLEET.replace("models:", queue, 1).replace("replicas: {max: 2}", "service: chat, replicas: {max: 1}")
    report = diff(("nodes: 4, ", "nodes: 4, nodeSelector: {zone: a}, "), before=before)
    assert of(report, "chat").effect == "refused"
    assert "Kueue never admits the second cluster" in of(report, "chat").reasons[0]
    held = before.replace("chat: {values", "chat: {upgrade: None, values")
    report = diff(("nodes: 4, ", "nodes: 4, nodeSelector: {zone: a}, "), before=held)
    assert of(report, "chat").effect == "held back"
    (advice,) = of(report, "chat").advice
    assert advice.startswith("Kueue admits one Ray cluster of a RayService"), "more GPUs would not help"


def test_diff_names_a_change_of_a_volume_that_the_api_server_refuses() -> None:
    report = diff(("weights: {storageClass: nfs}", "weights: {storageClass: other}"))
    assert of(report, "chat").effect == "refused"
    assert report.dangers == ("refused",)
    assert "spec.storageClassName cannot change (nfs -> other)" in of(report, "chat").reasons[0]
    assert report.gpus[0].before == report.gpus[0].after


def claim(size: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": "weights", "annotations": annotations}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {"resources": {"requests": {"storage": size}}},
    }


@pytest.mark.parametrize(("size", "refusals"), [("10Gi", 0), ("10240Mi", 0), ("20Gi", 0), ("5Gi", 1)])
def test_volume_grows_and_never_shrinks(size: str, refusals: int) -> None:
    assert len(list(list_refused_changes([claim("10Gi")], [claim(size)]))) == refusals


def test_objects_of_hooks_and_new_objects_are_not_refused() -> None:
    hook = claim("5Gi", **{"helm.sh/hook": "pre-upgrade"})
    assert not list(list_refused_changes([claim("10Gi")], [hook]))
    assert not list(list_refused_changes([], [claim("5Gi")]))


def test_diff_lists_bounds_that_wait_for_the_next_switch() -> None:
    assert of(diff(("max: 2", "max: 3")), "chat").at_next_switch == ("spec.rayClusterConfig.*.maxReplicas",)


def test_diff_counts_gpus_of_both_clusters_of_an_upgrade() -> None:
    report = diff(("nodes: 4, ", "nodes: 4, nodeSelector: {zone: a}, "))
    (need,) = report.gpus
    assert (need.before, need.meanwhile, need.after, need.capacity) == (2, 4, 2, 4)
    assert "no-room" not in report.dangers


def test_diff_orders_upgrades_that_fit_one_by_one() -> None:
    report = diff(("nodes: 4, ", "nodes: 3, nodeSelector: {zone: a}, "))
    assert "no-room" in report.dangers
    assert [(wave.releases, wave.missing) for wave in report.waves] == [(("chat",), ()), (("embed",), ())]
    assert "| 2 | embed | enough |" in format_markdown(report)
    assert report.advice[-1].startswith("merge in the order of upgrades")


def test_diff_frees_gpus_before_it_takes_them() -> None:
    report = diff(
        ("  embed: {source: BAAI/bge-m3, unpinnedReason: only rendered, task: embed}\n", ""),
        (
            "models:\n",
            "models:\n  rank: {source: BAAI/bge-reranker-v2-m3, unpinnedReason: only rendered, task: rerank}\n",
        ),
        (", embed", ", rank"),
        before=FLEET.replace("nodes: 4", "nodes: 2").replace("max: 2", "max: 1"),
    )
    assert [wave.releases for wave in report.waves] == [("embed",), ("rank",)]


def change(release: str, before: int, meanwhile: int, after: int, pool: str = "a") -> GpuChange:
    counts = (Counter({("main", pool, GPU): count}) for count in (before, meanwhile, after))
    return GpuChange("main", "models", release, *counts)


@pytest.mark.parametrize(
    ("changes", "limits", "waves"),
    [
        ([change("x", 2, 4, 2), change("y", 1, 2, 1)], {POOL: 6}, [("y", "x")]),
        ([change("x", 2, 4, 2), change("y", 1, 2, 1)], {POOL: 5}, [("y",), ("x",)]),
        ([change("x", 2, 4, 2), change("y", 1, 2, 1), change("idle", 2, 2, 2)], {POOL: 7}, [("y",), ("x",)]),
        ([change("x", 4, 6, 2), change("y", 1, 4, 3)], {POOL: 7}, [("x",), ("y",)]),
        ([change("x", 2, 4, 2), change("y", 2, 4, 2, pool="b")], {POOL: 4}, [("x", "y")]),
        # What grows waits until the others have used the room.
        ([change("x", 5, 10, 5), change("y", 1, 2, 1), change("new", 0, 2, 2)], {POOL: 11}, [("y",), ("x",), ("new",)]),
        # 2 run after `grown`, and `new` needs the rest.
        ([change("new", 0, 6, 6), change("grown", 1, 7, 2)], {POOL: 8}, [("grown",), ("new",)]),
        ([change("x", 2, 4, 2), change("y", 2, 4, 2, pool="b")], {QUOTA: 6}, [("x",), ("y",)]),
    ],
)
def test_waves_fit_pools_and_quotas(
    changes: list[GpuChange], limits: dict[Limit, int], waves: list[tuple[str, ...]]
) -> None:
    found = order_waves(changes, limits)
    assert [wave.releases for wave in found] == waves
    assert not any(wave.missing for wave in found)


def test_diff_reports_models_and_times_of_the_plan() -> None:
    chat = of(diff(("context: 8192", "context: 4096")), "chat")
    (model,) = chat.models
    assert (model.change, model.load_seconds) == ("restarted", chat.seconds)
    assert "only" not in chat.time_basis
    assert "measured" in chat.requests


def test_diff_shows_cost_before_and_after() -> None:
    report = diff(("  embed: {source: BAAI/bge-m3, unpinnedReason: only rendered, task: embed}\n", ""), (", embed", ""))
    assert of(report, "embed").effect == "uninstall"
    assert "removed" in report.dangers
    assert of(report, "embed").price_after == 0
    assert report.price_before == 2
    assert report.price_after == 1


def test_diff_forecasts_another_operator_version() -> None:
    report = diff(("kuberay: 1.7.0", "kuberay: 1.6.2"))
    assert of(report, "chat").effect == "in place"
    assert "overwrites" in of(report, "chat").reasons[0]
    assert "absorbed" not in report.dangers
    assert any("1.7.0 to 1.6.2" in note for note in report.notes)


def test_diff_warns_of_an_edit_that_an_operator_upgrade_absorbs() -> None:
    report = diff(("kuberay: 1.7.0", "kuberay: 1.6.2"), ("nodes: 4, ", "nodes: 4, nodeSelector: {zone: a}, "))
    assert "absorbed" in report.dangers
    assert any("alone" in text for text in of(report, "chat").advice)


def test_diff_of_an_added_model_installs_its_service() -> None:
    before = FLEET.replace("  embed: {source: BAAI/bge-m3, unpinnedReason: only rendered, task: embed}\n", "")
    report = compare_sides(side(before.replace(", embed", "")), side(FLEET))
    assert of(report, "embed").effect == "install"
    assert [model.change for model in of(report, "embed").models] == ["added"]
    assert of(report, "embed").dangers == ()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            ("tenants:\n", "tenants:\n  team: {models: [embed]}\n"),
            "tenant team is added and may call embed; its requests get 401 until Secret gateway-keys-team has its keys",
        ),
        (("requestsPerMinute: 60", "requestsPerMinute: 90"), "tenant apps: requestsPerMinute 60 -> 90"),
        (("requestsPerMinute: 60", "tokensPerMinute: 9000"), "tenant apps: tokensPerMinute no limit -> 9000"),
    ],
    ids=["added", "limit", "first limit"],
)
def test_diff_names_what_changes_for_tenants(edit: tuple[str, str], expected: str) -> None:
    (gateway,) = [each for each in diff(edit).releases if each.chart == "gateway"]
    assert expected in gateway.reasons


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            ("requestsPerMinute: 60", "requestsPerMinute: 90"),
            "none: no pod is replaced; each pod takes over the new limits",
        ),
        (("allowedClients: [apps]", "allowedClients: [apps, web]"), "none: no pod is replaced"),
        (("requestsPerMinute: 60", "tokensPerMinute: 9000"), "none expected if its pods are replaced"),
    ],
    ids=["limit", "network policy", "other rules"],
)
def test_diff_says_whether_pods_of_the_gateway_are_replaced(edit: tuple[str, str], expected: str) -> None:
    (gateway,) = [each for each in diff(edit).releases if each.chart == "gateway"]
    assert gateway.requests.startswith(expected)
    assert ("new limits" in gateway.requests) == ("new limits" in expected)


def test_diff_names_tenants_and_models_that_are_added_and_removed() -> None:
    before = {"tenants": {"apps": {"models": ["chat"]}, "old": {"models": ["chat"]}}}
    after = {"tenants": {"apps": {"models": ["chat", "embed"]}}}
    expected = ["tenant old is removed: its keys get 401", "tenant apps may also call embed"]
    assert list(list_access_changes(before, after)) == expected
    (lost,) = list_access_changes(after, {"tenants": {"apps": {"models": ["chat"]}}})
    assert lost == "tenant apps may no longer call embed: its requests get 404"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"tokensPerMinute": 50000}, "tokensPerMinute no limit -> 50000"),
        ({"requestsPerMinute": 6}, {}, "requestsPerMinute 6 -> default"),
        ({}, {"maxOutputTokens": {"chat": 100}}, "maxOutputTokens of chat no limit -> 100"),
        ({"maxBodyBytes": {"chat": 9}}, {"maxBodyBytes": {"chat": 5}}, "maxBodyBytes of chat 9 -> 5"),
        ({"pinnedVersions": {"chat": "v1"}}, {}, "pinnedVersions of chat v1 -> by weight"),
    ],
)
def test_diff_names_each_limit_of_a_tenant_that_changes(
    before: dict[str, object], after: dict[str, object], expected: str
) -> None:
    first, last = ({"tenants": {"apps": {"models": ["chat"], **each}}} for each in (before, after))
    assert list(list_access_changes(first, last)) == [f"tenant apps: {expected}"]


TWO_POOLS = """\
fleet: two
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true, gateway: {allowedClients: [web]}}}
pools:
  reserved: {gpu: L40S-48GB, nodes: 5}
  burst: {gpu: RTX-A6000-48GB, nodes: 4}
models:
  chat: {source: Qwen/Qwen3-8B, unpinnedReason: only rendered, context: 4096, replicas: 4, pools: [reserved, burst]}
tenants:
  apps: {models: [chat], requestsPerMinute: 6000}
services:
  chat: {tenant: apps}
"""


def test_diff_of_one_pool_less_fails_only_requests_in_flight() -> None:
    burst = of(diff(("pools: [reserved, burst]", "pool: reserved"), before=TWO_POOLS), "chat-burst")
    assert burst.effect == "uninstall"
    assert burst.requests == "requests in flight on these replicas fail; the others of `chat` take new ones"
    assert (burst.dangers, burst.advice) == (("removed",), ())


def test_requests_of_models_without_others_fail_besides_those_in_flight() -> None:
    models = [ModelReport(model=name, change="removed") for name in ("a", "b")]
    text, is_risky = describe_requests("uninstall", models, {}, {"a": "chat"})
    assert text.startswith("every request of b fails; requests in flight on these replicas fail; the others of `chat`")
    assert is_risky


def test_diff_of_a_second_cluster_keeps_the_services_of_the_first() -> None:
    more = "    gateway: {replicas: 1, allowedClients: [apps]}\n"
    report = diff((more, f"{more}  edge: {{apiServer: {{cidrs: [10.0.0.2/32]}}}}\n"))
    assert not [each for each in report.releases if each.effect in ("install", "uninstall")]


def test_markdown_has_no_raw_pipes_in_cells_and_every_release() -> None:
    report = diff(("context: 8192", "context: 4096"))
    text = format_markdown(report.model_copy(update={"old": "a|b"}))
    assert "a\\|b" in text
    for each in report.releases:
        assert f"| {each.chart} {each.release}" in text


def test_measured_failures_are_those_of_the_benchmark() -> None:
    rows = json.loads((Path(__file__).parents[2] / "benchmarks/failures/result.json").read_text())["rows"]
    measured = {row["name"]: row for row in rows}
    for name, row in load_measured_failures().items():
        assert row.model_dump() == {key: measured[name][key] for key in row.model_dump()}


@dataclass(frozen=True)
class Times:
    replicas: int
    seconds: float


@pytest.mark.parametrize("case", [Times(1, 10), Times(2, 20), Times(4, 40), Times(10, 50)], ids=str)
def test_rolling_restart_takes_the_load_time_of_each_batch(case: Times) -> None:
    model = ModelReport(model="chat", change="restarted", load_seconds=10)
    seconds, basis = estimate_seconds("serve config", [model], {"chat": case.replicas}, 60)
    assert seconds == case.seconds
    assert "assumption" in basis


def test_requests_are_at_risk_only_while_one_replica_runs() -> None:
    model = ModelReport(model="chat", change="restarted", load_seconds=10, requests_per_second=3)
    alone, is_risky = describe_requests("serve config", [model], {"chat": 1})
    assert is_risky
    assert "3 requests/s" in alone
    assert not describe_requests("serve config", [model], {"chat": 2})[1]


def test_time_is_unknown_without_a_plan() -> None:
    seconds, basis = estimate_seconds("new cluster", [ModelReport(model="chat", change="loaded")], {}, 60)
    assert seconds is None
    assert "fleet file" in basis


def test_waves_name_what_is_missing_when_changes_fit_in_no_order() -> None:
    fits, last = order_waves([change("x", 2, 4, 2), change("y", 1, 2, 1), change("z", 1, 4, 2)], {POOL: 5})
    assert (fits.releases, last.releases) == (("y",), ("x", "z"))
    assert last.missing == ("1 nvidia.com/gpu in pool a for x",)
    (said,) = advise_fleet([], [], [last])
    assert said.startswith("x, z fit in no order: add 1 nvidia.com/gpu in pool a for x (")


def test_waves_of_several_clusters_name_them() -> None:
    west = GpuChange("west", "models", "chat", *(Counter({("west", "b", GPU): count}) for count in (2, 4, 2)))
    waves = order_waves([change("chat", 2, 4, 2), west], {POOL: 4, ("pool", "west", "b", GPU): 3})
    assert [wave.releases for wave in waves] == [("chat (main)",), ("chat (west)",)]
    assert waves[1].missing == ("1 nvidia.com/gpu in pool b",)


@pytest.mark.parametrize("seed", range(200))
def test_waves_find_an_order_where_there_is_one(seed: int) -> None:
    random = Random(seed)
    limit, changes = random.randint(3, 9), list[GpuChange]()
    for number in range(random.randint(1, 4)):
        before, after = random.randint(0, 3), random.randint(0, 3)
        both = random.choice((before + after, max(before, after)))
        changes.append(change(f"s{number}", before, both, after))
    limit = max(limit, sum(each.before.total() for each in changes))
    waves = order_waves(changes, {POOL: limit})

    def fits(order: Iterable[GpuChange]) -> bool:
        used = sum(each.before.total() for each in changes)
        for each in order:
            if each.is_change and used + each.meanwhile.total() - each.before.total() > limit:
                return False
            used += each.after.total() - each.before.total()
        return True

    by_name = {each.release: each for each in changes}
    found = [by_name[name] for wave in waves for name in wave.releases]
    is_complete = not any(wave.missing for wave in waves)
    assert is_complete == any(fits(order) for order in permutations(changes))
    assert not is_complete or fits(found)
