"""From the plan to the values of the doors and of the walls."""

import re
from pathlib import Path

import pytest

from rayhelm.errors import FleetError
from rayhelm.lint.fleet import lint_fleet
from rayhelm.render.files import Rendered, build_files, render_fleet, render_loaded_fleet
from rayhelm.render.releases import Release
from rayhelm.spec.tenants import Tenant as Declared
from rayhelm.values.build.worker_groups import get_gpu_resource
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.tenants import GatewayTenant
from rayhelm.values.tenant import TenantValues
from rayhelm.values.tenant.quota import PodQuota
from unit.fleets import load

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))
FLEET = """\
fleet: doors
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools: {gpu: {gpu: L4-24GB, nodes: 4}}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096, unpinnedReason: a test needs no commit}
  embed: {source: BAAI/bge-m3, task: embed, unpinnedReason: a test needs no commit}
services: {chat: {tenant: owner}, embed: {tenant: owner}}
tenants:
  owner: {models: [chat, embed]}
  guest: {models: [chat], requestsPerMinute: 7, concurrency: 2, keys: {secret: theirs}}
"""


def of(text: str) -> Rendered:
    return render_loaded_fleet(load(text))


def release(rendered: Rendered, file: str) -> Release:
    (found,) = [one for one in rendered.releases if one.file == file]
    return found


def door(text: str, file: str = "gateway/gateway.yaml") -> GatewayValues:
    values = release(of(text), file).values
    assert isinstance(values, GatewayValues)
    return values


def wall(text: str, file: str = "tenant/owner.yaml") -> TenantValues:
    values = release(of(text), file).values
    assert isinstance(values, TenantValues)
    return values


# -- doors -------------------------------------------------------------------------------------------------------------


def test_a_model_is_reached_at_the_service_that_holds_it() -> None:
    model = door(FLEET % "").models["embed"]
    assert model.task == "embed"
    (version,) = model.versions.values()
    (endpoint,) = version.endpoints.values()
    assert (version.weight, version.route_prefix) == (100, "/embed")
    assert (endpoint.service, endpoint.namespace, endpoint.port) == ("embed", "owner", 8000)


def test_a_tenant_has_its_keys_its_models_and_its_limits() -> None:
    guest = door(FLEET % "").tenants["guest"]
    assert (guest.keys.secret_name, guest.models) == ("theirs", ["chat"])
    assert (guest.requests_per_minute, guest.concurrency) == (7, 2)


def test_what_the_fleet_leaves_out_is_what_the_chart_would_take() -> None:
    declared, chart = Declared(), GatewayTenant()
    assert declared.requests_per_minute == chart.requests_per_minute
    assert declared.concurrency == chart.concurrency


def test_a_model_for_aliases_alone_is_not_behind_the_door() -> None:
    aliases = "embed: {tenant: owner, aliases: {namespace: apps, names: [embedder]}}"
    text = (FLEET % "").replace("[chat, embed]", "[chat]").replace("embed: {tenant: owner}", aliases)
    assert list(door(text).models) == ["chat"]


def test_a_fleet_without_callers_has_no_door() -> None:
    assert {one.chart for one in of((FLEET % "").partition("services:")[0]).releases} == {"platform", "ray-service"}


def test_the_paths_of_an_application_of_one_s_own_are_open() -> None:
    paths = "paths: {/v1/ocr: POST, /v1/info: GET}"
    own = f"task: custom, application: {{importPath: 'my.ocr:build', deployment: Ocr, {paths}}}"
    model = door((FLEET % "").replace("task: embed", own)).models["embed"]
    assert {path: operation.method for path, operation in model.operations.items()} == {
        "/v1/ocr": "POST",
        "/v1/info": "GET",
    }


@pytest.mark.parametrize(
    ("gateway", "kind", "names"),
    [
        ("ingress: {className: nginx, tlsSecret: tls, annotations: {a.example/b: c}}", "Ingress", ("nginx", "tls", "")),
        ("httpRoute: {gateway: shared, namespace: infra, listener: https}", "HTTPRoute", ("", "", "shared")),
    ],
)
def test_the_way_in_is_the_one_that_the_cluster_has(gateway: str, kind: str, names: tuple[str, str, str]) -> None:
    exposure = door(FLEET % f", gateway: {{host: ai.example.com, allowedClients: [front], {gateway}}}").exposure
    assert (exposure.kind, exposure.hosts) == (kind, ["ai.example.com"])
    assert (exposure.ingress.class_name, exposure.ingress.tls_secret, exposure.http_route.parent.name) == names
    assert exposure.annotations == ({"a.example/b": "c"} if kind == "Ingress" else {})


def test_only_the_namespaces_that_the_fleet_names_may_knock() -> None:
    callers = door(FLEET % ", gateway: {allowedClients: [apps, nginx]}").network_policy.allowed_clients
    assert {peer.namespace for peer in callers.values()} == {"apps", "nginx"}


@pytest.mark.parametrize(
    ("replicas", "kind", "bounds"), [("3", "None", (2, 6)), ("{min: 1, max: 9}", "HPA", (1, 9)), ("", "HPA", (2, 6))]
)
def test_the_door_has_as_many_pods_as_the_fleet_says(replicas: str, kind: str, bounds: tuple[int, int]) -> None:
    found = door(FLEET % (f", gateway: {{replicas: {replicas}}}" if replicas else ""))
    assert (found.autoscaling.kind, (found.autoscaling.min_replicas, found.autoscaling.max_replicas)) == (kind, bounds)
    assert replicas != "3" or found.replicas == 3


# -- what services let in ----------------------------------------------------------------------------------------------


def test_a_service_lets_in_the_pods_of_the_door_alone() -> None:
    rendered = of(FLEET % ", gateway: {namespace: front}")
    (peer,) = rendered.values["chat"].network_policy.allowed_gateways.values()
    assert (peer.namespace, peer.pod_labels) == ("front", {"rayhelm.dev/gateway": "gateway"})


def test_without_a_door_of_ours_a_service_lets_in_whoever_stands_in_its_namespace() -> None:
    (peer,) = of((FLEET % "").partition("services:")[0]).values["chat"].network_policy.allowed_gateways.values()
    assert (peer.namespace, peer.pod_labels) == ("gateway", {})


# -- walls -------------------------------------------------------------------------------------------------------------


def test_a_quota_is_the_plan_and_what_upgrades_need_beside_it() -> None:
    cards = wall(FLEET % "").quota.gpus["nvidia.com/gpu"]
    assert (cards.planned, cards.baseline, cards.upgrade_surge) == (2, None, 2)


def test_a_service_that_is_never_upgraded_beside_itself_needs_nothing_more() -> None:
    text = (FLEET % "").replace("chat: {tenant: owner}", "chat: {tenant: owner, upgrade: None}")
    assert wall(text).quota.gpus["nvidia.com/gpu"].upgrade_surge == 1


@pytest.mark.parametrize(("gpus", "baseline"), [("", 6), ("gpus: 4, ", 4)])
def test_pinned_replicas_beyond_the_load_may_grow_within_the_tenant_s_bound(gpus: str, baseline: int) -> None:
    """Each could alone reach its most, all of them together could not."""
    more = "replicas: {min: 1, max: 3}"
    text = (
        (FLEET % "").replace("context: 4096", f"context: 4096, {more}").replace("task: embed", f"task: embed, {more}")
    )
    cards = wall(text.replace("owner: {", f"owner: {{{gpus}")).quota.gpus["nvidia.com/gpu"]
    assert (cards.planned, cards.baseline) == (2, baseline)


def test_a_tenant_has_a_quota_in_each_cluster_that_it_owns_something_in() -> None:
    main, edge = (f"apiServer: {{cidrs: [{address}/32]}}" for address in ("10.0.0.1", "10.9.0.1"))
    text = (FLEET % "").replace(f"{{main: {{{main}}}}}", f"{{main: {{{main}}}, edge: {{{edge}}}}}")
    text = text.replace("nodes: 4}", "nodes: 4}, far: {gpu: L4-24GB, nodes: 1, cluster: edge}")
    text = text.replace("task: embed", "task: embed, pool: far")
    rendered = of(text)
    assert [one.file for one in rendered.releases] == [
        "platform/main/platform.yaml",
        "platform/edge/platform.yaml",
        "tenant/main/owner.yaml",
        "tenant/edge/owner.yaml",
        "ray-service/chat.yaml",
        "ray-service/embed.yaml",
        "gateway/main/gateway.yaml",
        "gateway/edge/gateway.yaml",
    ]
    assert wall(text, "tenant/main/owner.yaml").quota.gpus["nvidia.com/gpu"].planned == 1
    assert list(door(text, "gateway/edge/gateway.yaml").tenants) == ["owner"]
    assert list(door(text, "gateway/main/gateway.yaml").models) == ["chat"]


def test_the_walls_let_out_whom_the_gateway_lets_in() -> None:
    assert not wall(FLEET % ", gateway: {allowedClients: [apps]}").network_policy.egress
    (name, door), *_ = wall(FLEET % ", gateway: {allowedClients: [owner]}").network_policy.egress.items()
    assert (name, door.peer.namespace, door.ports) == ("gateway", "gateway", [8080])
    assert door.peer.pod_labels == {"rayhelm.dev/gateway": "gateway"}


def test_the_walls_let_out_whom_aliases_are_for() -> None:
    aliases = "{tenant: owner, aliases: {namespace: owner, names: [chat-predictor]}}"
    text = (FLEET % "").replace("chat: {tenant: owner}", f"chat: {aliases}")
    assert wall(text).network_policy.egress["chat"].peer.pod_labels == {
        "rayhelm.dev/service": "chat",
        "rayhelm.dev/role": "worker",
    }
    assert not wall(text.replace("namespace: owner", "namespace: apps")).network_policy.egress


def test_members_are_handed_on() -> None:
    access = "access: {viewers: {users: [ada]}, editors: {groups: [team]}, deployers: {serviceAccounts: [ci/flux]}}"
    found = wall((FLEET % "").replace("owner: {", f"owner: {{{access}, ")).access
    assert (found.viewers.users, found.editors.groups, found.deployers.service_accounts) == (
        ["ada"],
        ["team"],
        ["ci/flux"],
    )


def test_a_namespace_of_another_name_is_the_service_s_too() -> None:
    text = (FLEET % "").replace("owner: {", "owner: {namespace: elsewhere, ")
    assert wall(text).namespace.name == "elsewhere"
    assert release(of(text), "ray-service/chat.yaml").namespace == "elsewhere"
    assert door(text).models["chat"].versions["stable"].endpoints["chat"].namespace == "elsewhere"


def test_a_release_of_a_tenant_lies_out_of_its_reach() -> None:
    assert release(of(FLEET % ""), "tenant/owner.yaml").namespace == "tenants"


def test_a_large_tenant_has_room_for_its_pods_and_volumes() -> None:
    text = f"""\
fleet: large
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
pools: {{gpu: {{gpu: L4-24GB, nodes: 300}}}}
models: {{{", ".join(f"m{number}: {{source: Qwen/Qwen3-0.6B, context: 4096, replicas: 9}}" for number in range(12))}}}
services: {{{", ".join(f"m{number}: {{tenant: owner, weightsSize: 600GiB}}" for number in range(12))}}}
tenants: {{owner: {{}}}}
"""
    quota = wall(text).quota
    assert quota.pods.baseline > 12 * 9
    assert quota.pods.upgrade_surge > PodQuota().upgrade_surge
    assert quota.objects.ray_services == 12
    assert quota.objects.secrets > 12 * 10
    assert quota.storage.size == "8Ti"


# -- the reference fleets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FLEETS)
def test_every_pod_of_a_reference_fleet_has_room_in_its_owner_s_quota(name: str) -> None:
    rendered = render_fleet(VALUES / name / "fleet.yaml")
    for (cluster, tenant), values in rendered.tenants.items():
        plans = {
            key: plan
            for key, plan in rendered.plan.services.items()
            if (plan.cluster, plan.tenant) == (cluster, tenant)
        }
        for resource, cards in values.quota.gpus.items():
            groups = [group for key in plans for group in rendered.values[key].worker_groups.values()]
            asked = sum(group.max_replicas * group.gpu.count for group in groups if get_gpu_resource(group) == resource)
            assert asked == cards.planned
            upgraded = [plan for plan in plans.values() if plan.upgrade == "NewCluster"]
            assert cards.upgrade_surge == sum(plan.gpu_resources.get(resource, 0) for plan in upgraded)
            assert cards.planned == sum(plan.gpu_resources.get(resource, 0) for plan in plans.values())


@pytest.mark.parametrize("name", FLEETS)
def test_every_model_of_a_reference_fleet_can_be_called_by_somebody(name: str) -> None:
    rendered = render_fleet(VALUES / name / "fleet.yaml")
    behind = [model for plan in rendered.plan.gateways.values() for model in plan.models]
    assert sorted(behind) == sorted({plan.served_as for plan in rendered.plan.models.values()})
    assert not [warning for warning in rendered.plan.warnings if not re.search("is unused|aliases", warning)]


def test_cards_are_told_by_the_names_that_a_quota_counts() -> None:
    cards = render_fleet(VALUES / "homelab" / "fleet.yaml").plan.services["ai-inference"].gpu_resources
    assert cards == {"amd.com/gpu": 2, "nvidia.com/gpu": 1, "gpu.intel.com/i915": 1}


def test_the_page_tells_who_may_call_and_what_tenants_may_hold() -> None:
    page = build_files(of(FLEET % ", gateway: {allowedClients: [apps]}"))["plan.md"]
    assert "| main | http://gateway.gateway | gateway | chat, embed |" in page
    assert "| guest | chat | 7 | 2 | theirs |" in page
    assert "| owner | main | owner | chat, embed | nvidia.com/gpu | 2 | 4 = 2 baseline + 2 upgrade surge |" in page


# -- lint --------------------------------------------------------------------------------------------------------------


def lint(folder: Path, text: str) -> FleetError:
    (folder / "fleet.yaml").write_text(text)
    with pytest.raises(FleetError) as caught:
        lint_fleet(folder / "fleet.yaml", ask_ray=False)
    return caught.value


def test_a_rule_of_the_chart_tenant_is_told_at_the_tenant(tmp_path: Path) -> None:
    wrong = "owner: {access: {editors: {groups: ['system:masters']}}, "
    (problem,) = lint(tmp_path, (FLEET % "").replace("owner: {", wrong)).problems
    assert (problem.rule, problem.line) == ("subject-of-the-system", 9)


def test_every_release_is_checked(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET % "")
    done = lint_fleet(tmp_path / "fleet.yaml", ask_ray=False).done
    charts = [found[1] for line in done if (found := re.search("chart (.*) renders", line))]
    assert charts == ["platform", "tenant", "ray-service", "ray-service", "gateway"]
