"""Values of the charts `gateway` and `tenant`, built from the plan."""

import re
from pathlib import Path

import pytest

from rayhelm.check.lint.fleet import lint_fleet
from rayhelm.deploy.compose.worker_groups import get_gpu_resource
from rayhelm.deploy.render.files import Rendered, build_files, render_fleet, render_plan
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.tenants import GatewayTenant
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.deploy.values.tenant.quota import PodQuota
from rayhelm.errors import FleetError
from rayhelm.fleet.tenants import Tenant as Declared
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))
FLEET = """\
fleet: two-models
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}%s}}
pools: {gpu: {gpu: L4-24GB, nodes: 4}}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096, unpinnedReason: a test needs no commit}
  embed: {source: BAAI/bge-m3, task: embed, unpinnedReason: a test needs no commit}
services: {chat: {tenant: owner}, embed: {tenant: owner}}
tenants:
  owner: {models: [chat, embed]}
  other: {models: [chat], requestsPerMinute: 7, concurrency: 2, keys: {secret: theirs}}
"""


def render_text(text: str) -> Rendered:
    return render_plan(plan_fleet(load(text)))


def release(rendered: Rendered, file: str) -> Release:
    (found,) = [one for one in rendered.releases if one.file == file]
    return found


def render_gateway(text: str, file: str = "gateway/gateway.yaml") -> GatewayValues:
    values = release(render_text(text), file).values
    assert isinstance(values, GatewayValues)
    return values


def render_tenant(text: str, file: str = "tenant/owner.yaml") -> TenantValues:
    values = release(render_text(text), file).values
    assert isinstance(values, TenantValues)
    return values


# -- values of chart gateway -------------------------------------------------------------------------------------------


def test_endpoint_of_a_model_is_its_service() -> None:
    model = render_gateway(FLEET % "").models["embed"]
    assert model.task == "embed"
    (version,) = model.versions.values()
    (endpoint,) = version.endpoints.values()
    assert (version.weight, version.route_prefix) == (100, "/embed")
    assert (endpoint.service, endpoint.namespace, endpoint.port) == ("embed", "owner", 8000)


def test_gateway_tenant_has_its_keys_models_and_limits() -> None:
    other = render_gateway(FLEET % "").tenants["other"]
    assert (other.keys.secret_name, other.models) == ("theirs", ["chat"])
    assert (other.requests_per_minute, other.concurrency) == (7, 2)


def test_fleet_and_chart_have_the_same_default_limits() -> None:
    declared, chart = Declared(), GatewayTenant()
    assert declared.requests_per_minute == chart.requests_per_minute
    assert declared.concurrency == chart.concurrency


def test_gateway_lacks_a_model_that_only_aliases_serve() -> None:
    aliases = "embed: {tenant: owner, aliases: {namespace: apps, names: [embedder]}}"
    text = (FLEET % "").replace("[chat, embed]", "[chat]").replace("embed: {tenant: owner}", aliases)
    assert list(render_gateway(text).models) == ["chat"]


def test_fleet_without_tenants_has_no_gateway() -> None:
    assert {one.chart for one in render_text((FLEET % "").partition("services:")[0]).releases} == {
        "platform",
        "ray-service",
    }


def test_gateway_has_the_paths_of_a_custom_application() -> None:
    paths = "paths: {/v1/ocr: POST, /v1/info: GET}"
    own = f"task: custom, application: {{importPath: 'my.ocr:build', deployment: Ocr, {paths}}}"
    model = render_gateway((FLEET % "").replace("task: embed", own)).models["embed"]
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
def test_gateway_is_exposed_by_the_route_of_the_cluster(gateway: str, kind: str, names: tuple[str, str, str]) -> None:
    exposure = render_gateway(
        FLEET % f", gateway: {{host: ai.example.com, allowedClients: [front], {gateway}}}"
    ).exposure
    assert (exposure.kind, exposure.hosts) == (kind, ["ai.example.com"])
    assert (exposure.ingress.class_name, exposure.ingress.tls_secret, exposure.http_route.parent.name) == names
    assert exposure.annotations == ({"a.example/b": "c"} if kind == "Ingress" else {})


@pytest.mark.parametrize(("key", "has_timeouts"), [("", True), (", timeouts: false", False)])
def test_route_has_timeouts_unless_the_fleet_leaves_them_out(key: str, has_timeouts: bool) -> None:
    route = f"allowedClients: [front], httpRoute: {{gateway: shared{key}}}"
    exposure = render_gateway(FLEET % f", gateway: {{host: ai.example.com, {route}}}").exposure
    assert exposure.http_route.timeouts is has_timeouts


def test_gateway_itself_has_the_tls_of_the_fleet() -> None:
    tls = "tls: {secrets: [a-tls, b-tls], cidrs: [203.0.113.0/24], annotations: {a.example/b: c}}"
    found = render_gateway(FLEET % f", gateway: {{host: ai.example.com, allowedClients: [apps], {tls}}}")
    assert (found.exposure.kind, found.exposure.hosts) == ("TLS", ["ai.example.com"])
    assert found.exposure.tls.secret_names == ["a-tls", "b-tls"]
    assert (found.service.type, found.service.port, found.service.annotations) == (
        "LoadBalancer",
        443,
        {"a.example/b": "c"},
    )
    clients = found.network_policy.allowed_clients
    assert {name: (each.namespace, each.cidrs) for name, each in clients.items()} == {
        "apps": ("apps", []),
        "outside-the-cluster": (None, ["203.0.113.0/24"]),
    }


def test_name_of_a_tls_secret_may_have_dots() -> None:
    tls = "tls: {secrets: [ai.example.com-tls], cidrs: [203.0.113.0/24]}"
    found = render_gateway(FLEET % f", gateway: {{host: ai.example.com, {tls}}}")
    assert found.exposure.tls.secret_names == ["ai.example.com-tls"]


def test_gateway_with_tls_inside_the_cluster_only_has_no_load_balancer() -> None:
    tls = "tls: {secrets: [ai-tls], service: ClusterIP}"
    found = render_gateway(FLEET % f", gateway: {{host: ai.example.com, allowedClients: [apps], {tls}}}")
    assert (found.exposure.kind, found.service.type, found.service.port) == ("TLS", "ClusterIP", 443)
    assert list(found.network_policy.allowed_clients) == ["apps"]


def test_gateway_and_services_have_the_serve_tls_of_the_cluster() -> None:
    found = render_text(FLEET % ", serveTls: {certificateAuthority: {secret: serve-ca, key: root.pem}}")
    gateway = release(found, "gateway/gateway.yaml").values
    assert isinstance(gateway, GatewayValues)
    assert {name: values.serve.tls.secret_name for name, values in found.values.items()} == {
        name: f"{name}-serve-tls" for name in found.plan.services
    }
    authority = gateway.upstream_tls.certificate_authority
    assert (authority.config_map_name, authority.secret_name, authority.key) == ("", "serve-ca", "root.pem")
    ends = [
        end
        for model in gateway.models.values()
        for version in model.versions.values()
        for end in version.endpoints.values()
    ]
    assert ends
    assert all(end.tls for end in ends)


def test_gateway_allows_only_the_namespaces_of_the_fleet() -> None:
    clients = render_gateway(FLEET % ", gateway: {allowedClients: [apps, nginx]}").network_policy.allowed_clients
    assert {peer.namespace for peer in clients.values()} == {"apps", "nginx"}


@pytest.mark.parametrize(
    ("replicas", "kind", "bounds"), [("3", "None", (2, 6)), ("{min: 1, max: 9}", "HPA", (1, 9)), ("", "HPA", (2, 6))]
)
def test_gateway_has_the_replicas_of_the_fleet(replicas: str, kind: str, bounds: tuple[int, int]) -> None:
    found = render_gateway(FLEET % (f", gateway: {{replicas: {replicas}}}" if replicas else ""))
    assert (found.autoscaling.kind, (found.autoscaling.min_replicas, found.autoscaling.max_replicas)) == (kind, bounds)
    assert replicas != "3" or found.replicas == 3


# -- allowed gateways of a service -------------------------------------------------------------------------------------


def test_service_allows_only_the_pods_of_its_gateway() -> None:
    rendered = render_text(FLEET % ", gateway: {namespace: front}")
    (peer,) = rendered.values["chat"].network_policy.allowed_gateways.values()
    assert (peer.namespace, peer.pod_labels) == ("front", {"rayhelm.dev/gateway": "gateway"})


def test_service_allows_every_pod_of_the_gateway_namespace_without_tenants() -> None:
    (peer,) = (
        render_text((FLEET % "").partition("services:")[0]).values["chat"].network_policy.allowed_gateways.values()
    )
    assert (peer.namespace, peer.pod_labels) == ("gateway", {})


# -- values of chart tenant --------------------------------------------------------------------------------------------


def test_quota_is_the_plan_and_the_upgrade_surge() -> None:
    gpus = render_tenant(FLEET % "").quota.gpus["nvidia.com/gpu"]
    assert (gpus.planned, gpus.baseline, gpus.upgrade_surge) == (2, None, 2)


def test_service_with_upgrade_none_adds_no_upgrade_surge() -> None:
    text = (FLEET % "").replace("chat: {tenant: owner}", "chat: {tenant: owner, upgrade: None}")
    assert render_tenant(text).quota.gpus["nvidia.com/gpu"].upgrade_surge == 1


@pytest.mark.parametrize(("limit", "baseline"), [("", 6), ("gpus: 4, ", 4)])
def test_quota_baseline_is_the_replica_maxima_up_to_gpus_of_the_tenant(limit: str, baseline: int) -> None:
    """With `gpus`, one service alone can reach its maximum, but not all services together."""
    more = "replicas: {min: 1, max: 3}"
    text = (
        (FLEET % "").replace("context: 4096", f"context: 4096, {more}").replace("task: embed", f"task: embed, {more}")
    )
    gpus = render_tenant(text.replace("owner: {", f"owner: {{{limit}")).quota.gpus["nvidia.com/gpu"]
    assert (gpus.planned, gpus.baseline) == (2, baseline)


def test_tenant_has_a_quota_in_each_cluster_where_it_owns_a_service() -> None:
    main, edge = (f"apiServer: {{cidrs: [{address}/32]}}" for address in ("10.0.0.1", "10.9.0.1"))
    text = (FLEET % "").replace(f"{{main: {{{main}}}}}", f"{{main: {{{main}}}, edge: {{{edge}}}}}")
    text = text.replace("nodes: 4}", "nodes: 4}, far: {gpu: L4-24GB, nodes: 1, cluster: edge}")
    text = text.replace("task: embed", "task: embed, pool: far")
    rendered = render_text(text)
    assert [one.file for one in rendered.releases] == [
        "platform/edge/platform.yaml",
        "platform/main/platform.yaml",
        "tenant/main/owner.yaml",
        "tenant/edge/owner.yaml",
        "ray-service/chat.yaml",
        "ray-service/embed.yaml",
        "gateway/edge/gateway.yaml",
        "gateway/main/gateway.yaml",
    ]
    assert render_tenant(text, "tenant/main/owner.yaml").quota.gpus["nvidia.com/gpu"].planned == 1
    assert list(render_gateway(text, "gateway/edge/gateway.yaml").tenants) == ["owner"]
    assert list(render_gateway(text, "gateway/main/gateway.yaml").models) == ["chat"]


def test_tenant_has_egress_to_a_gateway_that_allows_it() -> None:
    assert not render_tenant(FLEET % ", gateway: {allowedClients: [apps]}").network_policy.egress
    (name, egress), *_ = render_tenant(FLEET % ", gateway: {allowedClients: [owner]}").network_policy.egress.items()
    assert (name, egress.peer.namespace, egress.ports) == ("gateway", "gateway", [8080])
    assert egress.peer.pod_labels == {"rayhelm.dev/gateway": "gateway"}


def test_tenant_has_egress_to_a_service_with_aliases_for_it() -> None:
    aliases = "{tenant: owner, aliases: {namespace: owner, names: [chat-predictor]}}"
    text = (FLEET % "").replace("chat: {tenant: owner}", f"chat: {aliases}")
    assert render_tenant(text).network_policy.egress["chat"].peer.pod_labels == {
        "rayhelm.dev/service": "chat",
        "rayhelm.dev/role": "worker",
    }
    assert not render_tenant(text.replace("namespace: owner", "namespace: apps")).network_policy.egress


def test_tenant_values_have_the_members() -> None:
    access = "access: {viewers: {users: [ada]}, editors: {groups: [team]}, deployers: {serviceAccounts: [ci/flux]}}"
    found = render_tenant((FLEET % "").replace("owner: {", f"owner: {{{access}, ")).access
    assert (found.viewers.users, found.editors.groups, found.deployers.service_accounts) == (
        ["ada"],
        ["team"],
        ["ci/flux"],
    )


def test_service_is_in_the_namespace_of_its_tenant() -> None:
    text = (FLEET % "").replace("owner: {", "owner: {namespace: elsewhere, ")
    assert render_tenant(text).namespace.name == "elsewhere"
    assert release(render_text(text), "ray-service/chat.yaml").namespace == "elsewhere"
    assert render_gateway(text).models["chat"].versions["stable"].endpoints["chat"].namespace == "elsewhere"


def test_tenant_release_is_in_namespace_tenants() -> None:
    assert release(render_text(FLEET % ""), "tenant/owner.yaml").namespace == "tenants"


def test_quota_of_a_large_tenant_allows_its_pods_and_volumes() -> None:
    text = f"""\
fleet: large
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
pools: {{gpu: {{gpu: L4-24GB, nodes: 300}}}}
models: {{{", ".join(f"m{number}: {{source: Qwen/Qwen3-0.6B, context: 4096, replicas: 9}}" for number in range(12))}}}
services: {{{", ".join(f"m{number}: {{tenant: owner, weightsSize: 600GiB}}" for number in range(12))}}}
tenants: {{owner: {{}}}}
"""
    quota = render_tenant(text).quota
    assert quota.pods.baseline > 12 * 9
    assert quota.pods.upgrade_surge > PodQuota().upgrade_surge
    assert quota.objects.ray_services == 12
    assert quota.objects.secrets > 12 * 10
    assert quota.storage.size == "8Ti"


# -- the reference fleets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FLEETS)
def test_quotas_of_a_reference_fleet_allow_every_pod(name: str) -> None:
    rendered = render_fleet(VALUES / name / "fleet.yaml")
    for (cluster, tenant), values in rendered.tenants.items():
        plans = {
            key: plan
            for key, plan in rendered.plan.services.items()
            if (plan.cluster, plan.tenant) == (cluster, tenant)
        }
        for resource, gpus in values.quota.gpus.items():
            groups = [group for key in plans for group in rendered.values[key].worker_groups.values()]
            asked = sum(group.max_replicas * group.gpu.count for group in groups if get_gpu_resource(group) == resource)
            assert asked == gpus.planned
            upgraded = [plan for plan in plans.values() if plan.upgrade == "NewCluster"]
            assert gpus.upgrade_surge == sum(plan.gpu_resources.get(resource, 0) for plan in upgraded)
            assert gpus.planned == sum(plan.gpu_resources.get(resource, 0) for plan in plans.values())


@pytest.mark.parametrize("name", FLEETS)
def test_every_model_of_a_reference_fleet_has_a_gateway(name: str) -> None:
    rendered = render_fleet(VALUES / name / "fleet.yaml")
    gateways = rendered.plan.gateways.items()
    behind = sorted(
        (cluster, model) for cluster, plan in gateways for model in plan.models if model not in plan.forwarded
    )
    served = {(plan.cluster, plan.served_as) for plan in rendered.plan.models.values()}
    assert behind == sorted(served)
    for cluster, gateway in gateways:
        for model in gateway.forwarded:
            places = {other for other, remote in gateway.remotes.items() if model in remote.models}
            assert places & {where for where, served_as in served if served_as == model}
            assert (cluster, model) not in served
    meant = "is unused|aliases|allows all addresses|of several providers"
    assert not [warning for warning in rendered.plan.warnings if not re.search(meant, warning)]


def test_plan_counts_gpus_by_resource_name() -> None:
    gpus = render_fleet(VALUES / "homelab" / "fleet.yaml").plan.services["ai-inference"].gpu_resources
    assert gpus == {"amd.com/gpu": 2, "nvidia.com/gpu": 1, "gpu.intel.com/i915": 1}


def test_plan_page_shows_gateways_tenants_and_quotas() -> None:
    page = build_files(render_text(FLEET % ", gateway: {allowedClients: [apps]}"))["plan.md"]
    assert "| main | http://gateway.gateway | gateway | chat, embed |" in page
    assert "| other | chat | 7 | - | 2 | theirs |" in page
    assert "| owner | main | owner | chat, embed | nvidia.com/gpu | 2 | 4 = 2 baseline + 2 upgrade surge |" in page


# -- lint --------------------------------------------------------------------------------------------------------------


def lint(folder: Path, text: str) -> FleetError:
    (folder / "fleet.yaml").write_text(text)
    with pytest.raises(FleetError) as caught:
        lint_fleet(folder / "fleet.yaml", ask_ray=False)
    return caught.value


def test_problem_of_chart_tenant_is_reported_at_the_tenant(tmp_path: Path) -> None:
    wrong = "owner: {access: {editors: {groups: ['system:masters']}}, "
    (problem,) = lint(tmp_path, (FLEET % "").replace("owner: {", wrong)).problems
    assert (problem.rule, problem.line) == ("subject-reserved", 9)


def test_lint_checks_every_release(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET % "")
    done = lint_fleet(tmp_path / "fleet.yaml", ask_ray=False).done
    charts = [found[1] for line in done if (found := re.search("chart (.*) renders", line))]
    assert charts == ["platform", "tenant", "ray-service", "ray-service", "gateway"]
