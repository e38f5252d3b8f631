"""`values` of the fleet file are merged last into the values of the charts, and never change what the plan decides."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from rayhelm.deploy.compose.planned_values import load_planned_values
from rayhelm.deploy.render.files import Rendered, build_files, render_fleet, render_plan
from rayhelm.deploy.values.argocd import ArgocdValues
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.errors import FleetError, Problem
from rayhelm.facts.closed import Closed
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.walk import field_at, model_at
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml"))
CHARTS: dict[str, type[BaseModel]] = {
    "ray-service": RayServiceValues,
    "gateway": GatewayValues,
    "platform": PlatformValues,
    "tenant": TenantValues,
    "argocd": ArgocdValues,
}


def text(cluster: str = "{}", gateway: str = "{}", pool: str = "{}", service: str = "{}", tenant: str = "{}") -> str:
    """A fleet with `values` in each part that takes them."""
    return f"""
fleet: acme
clusters:
  main:
    apiServer: {{cidrs: [10.0.0.1/32]}}
    values: {cluster}
    gateway:
      allowedClients: [apps]
      values: {gateway}
pools:
  gpu:
    gpu: L4-24GB
    nodes: 2
    values: {pool}
models:
  chat: {{source: Qwen/Qwen3-8B, context: 8192, unpinnedReason: an example}}
services:
  chat:
    tenant: apps
    values: {service}
tenants:
  apps:
    gpus: 1
    models: [chat]
    values: {tenant}
"""


def render(**values: str) -> Rendered:
    return render_plan(plan_fleet(load(text(**values))))


def refuse(**values: str) -> Problem:
    """The one problem of such a fleet. Its fix is applied, and has to solve it."""
    with pytest.raises(FleetError) as caught:
        render(**values)
    (problem,) = caught.value.problems
    check_fixes(text(**values), [problem], lambda fixed: render_plan(plan_fleet(load(fixed))))
    return problem


def service(**values: str) -> dict[str, Any]:
    found: dict[str, Any] = render(**values).values["chat"].model_dump(by_alias=True)
    return found


def test_override_of_a_service_is_merged_into_its_values() -> None:
    head = service(service="{head: {resources: {limits: {memory: 12Gi}}, env: {A: '1'}}}")["head"]
    assert head["resources"]["limits"] == {"cpu": "2", "memory": "12Gi"}
    assert head["env"] == {"A": "1"}
    assert head["priorityClassName"] == "rayhelm-head"


def test_override_of_a_pool_reaches_its_worker_groups() -> None:
    assert service(pool="{shmSize: 16Gi}")["workerGroups"]["gpu"]["shmSize"] == "16Gi"


def test_override_of_a_service_wins_over_its_pool() -> None:
    found = service(pool="{shmSize: 16Gi, tmpSize: 5Gi}", service="{workerGroups: {gpu: {shmSize: 12Gi}}}")
    assert (found["workerGroups"]["gpu"]["shmSize"], found["workerGroups"]["gpu"]["tmpSize"]) == ("12Gi", "5Gi")


def test_override_of_a_gateway_selects_endpoints_by_session() -> None:
    session = "{header: x-session-id, fields: [user]}"
    rendered = render(gateway=f"{{models: {{chat: {{loadBalancing: {{session: {session}}}}}}}}}")
    (gateway,) = (each.values for each in rendered.releases if each.chart == "gateway")
    assert isinstance(gateway, GatewayValues)
    found = gateway.models["chat"].load_balancing
    assert (found.kind, found.session.header, found.session.fields) == ("PrefixHash", "x-session-id", ["user"])


def test_override_of_a_gateway_reaches_its_chart_and_the_tenants() -> None:
    rendered = render(gateway="{listen: {port: 9080}, timeouts: {serverSeconds: 1800}}")
    (gateway,) = (each.values for each in rendered.releases if each.chart == "gateway")
    assert isinstance(gateway, GatewayValues)
    assert (gateway.listen.port, gateway.timeouts.server_seconds) == (9080, 1800)
    tenant = rendered.tenants["main", "apps"]
    assert tenant.network_policy.egress["gateway"].ports == [9080]


def test_override_of_a_cluster_reaches_its_platform() -> None:
    rendered = render(cluster="{policies: {imageSource: {action: Warn, reason: a trial of a month}}}")
    (platform,) = (each.values for each in rendered.releases if each.chart == "platform")
    assert select_changed(platform)["policies"]["imageSource"]["action"] == "Warn"


def test_override_of_a_tenant_reaches_its_release() -> None:
    rendered = render(tenant="{kueue: {localQueue: batch, clusterQueue: gpus}, quota: {pods: {baseline: 99}}}")
    (release,) = (each.values for each in rendered.releases if each.chart == "tenant")
    assert isinstance(release, TenantValues)
    assert (release.kueue.local_queue, release.kueue.cluster_queue) == ("batch", "gpus")
    assert release.quota.pods.baseline == 99
    assert release.quota.gpus == render().tenants["main", "apps"].quota.gpus


def test_plan_warns_of_overrides_of_a_tenant_without_services() -> None:
    fleet = text(tenant="{kueue: {localQueue: batch}}").replace("    tenant: apps\n", "")
    assert (
        "`tenants.apps.values` has no effect and was not checked: the tenant owns no service, so it has no namespace"
    ) in plan_fleet(load(fleet)).warnings


def test_null_removes_the_entry_of_a_map() -> None:
    found = service(service="{workerGroups: {gpu: {env: {A: '1', B: '2'}}}}", pool="{env: {C: '3'}}")
    assert found["workerGroups"]["gpu"]["env"] == {"A": "1", "B": "2", "C": "3"}
    found = service(service="{workerGroups: {gpu: {env: {C: null}}}}", pool="{env: {C: '3', D: '4'}}")
    assert found["workerGroups"]["gpu"]["env"] == {"D": "4"}


def test_plan_lists_each_override() -> None:
    loaded = load(text(pool="{shmSize: 16Gi}", service="{head: {minAvailable: 0, tolerations: []}}"))
    plan = plan_fleet(loaded)
    assert [(each.part, each.chart, each.key, each.value) for each in plan.overrides] == [
        ("pools.gpu", "ray-service", "workerGroups.*.shmSize", "16Gi"),
        ("services.chat", "ray-service", "head.minAvailable", 0),
        ("services.chat", "ray-service", "head.tolerations", []),
    ]
    page = build_files(render_plan(plan_fleet(loaded)))["plan.md"]
    assert '| pools.gpu | ray-service | workerGroups.*.shmSize | "16Gi" |' in page


def test_plan_without_overrides_has_no_section_of_them() -> None:
    assert "Overrides" not in build_files(render())["plan.md"]


def test_plan_warns_of_overrides_that_no_release_has() -> None:
    fleet = text(pool="{shmSize: 16Gi}", gateway="{drain: {delaySeconds: 5}}").replace(
        "models:\n",
        "  spare: {gpu: L4-24GB, nodes: 1, nodeSelector: {example.com/pool: spare}, values: {shmSize: 1Gi}}\nmodels:\n",
    )
    fleet = fleet.replace("    nodes: 2", "    nodes: 2\n    nodeSelector: {example.com/pool: gpu}")
    warnings = plan_fleet(load(fleet.replace("models: [chat]", "models: []"))).warnings
    assert "`pools.spare.values` has no effect and was not checked: no model is on the pool" in warnings
    assert "`clusters.main.gateway.values` has no effect and was not checked: the cluster has no gateway" in warnings


@pytest.mark.parametrize(
    ("part", "values", "key", "field"),
    [
        ("service", "{workerGroups: {gpu: {maxReplicas: 3}}}", "workerGroups.gpu.maxReplicas", "models.chat.replicas"),
        ("service", "{image: {repository: registry.example/ours}}", "image.repository", "clusters.main.image"),
        ("service", "{tenant: other}", "tenant", "services.chat.tenant"),
        ("service", "{logs: {stdout: {enabled: true}}}", "logs.stdout.enabled", "clusters.main.logs.stdout"),
        (
            "service",
            "{serve: {applications: {chat: {models: {chat: {engine: {maxNumSeqs: 4}}}}}}}",
            "serve.applications.chat.models.chat.engine",
            "models.chat.engine",
        ),
        ("pool", "{runtimeClassName: nvidia}", "workerGroups.gpu.runtimeClassName", "pools.gpu.runtimeClass"),
        ("pool", "{nodeSelector: {zone: a}}", "workerGroups.gpu.nodeSelector", "pools.gpu.nodeSelector"),
        ("gateway", "{replicas: 3}", "replicas", "clusters.main.gateway.replicas"),
        ("gateway", "{tenants: {apps: {concurrency: 3}}}", "tenants.apps.concurrency", "tenants.apps.concurrency"),
        ("cluster", "{nvidia: {enabled: true}}", "nvidia.enabled", "clusters.main.gpuOperator"),
        (
            "service",
            "{networkPolicy: {operator: {namespace: ray}}}",
            "networkPolicy.operator.namespace",
            "clusters.main.kuberayOperator.namespace",
        ),
        (
            "cluster",
            "{metrics: {scraping: {kuberayNamespace: ray}}}",
            "metrics.scraping.kuberayNamespace",
            "clusters.main.kuberayOperator.namespace",
        ),
        ("tenant", "{namespace: {name: other}}", "namespace.name", "tenants.apps.namespace"),
        ("tenant", "{access: {editors: {groups: [a]}}}", "access.editors", "tenants.apps.access.editors"),
        ("tenant", "{quota: {gpus: {nvidia.com/gpu: {planned: 9}}}}", "quota.gpus", "tenants.apps.gpus"),
    ],
)
def test_override_of_a_planned_value_is_refused(part: str, values: str, key: str, field: str) -> None:
    problem = refuse(**{part: values})
    assert f"`{key}` cannot be overridden" in problem.message
    assert problem.message.endswith(f"Use `{field}` of the fleet file")
    lines = text(**{part: values}).splitlines()
    assert values in lines[(problem.line or 0) - 1]


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("service", "{networkPolicy: {operator: {namespace: ray}}}"),
        ("cluster", "{metrics: {scraping: {kuberayNamespace: ray}}}"),
    ],
)
def test_fix_names_the_namespace_of_the_operator(part: str, values: str) -> None:
    problem = refuse(**{part: values})
    assert "namespace: ray" in str(problem.fix)


def test_override_may_leave_the_operator_to_its_own_service_monitor() -> None:
    rendered = render(cluster='{metrics: {scraping: {kuberayNamespace: ""}}}')
    (platform,) = [each.values for each in rendered.releases if isinstance(each.values, PlatformValues)]
    assert platform.metrics.scraping.kuberay_namespace == ""


TLS = "host: ai.example.com\n      tls: {secrets: [a], cidrs: [203.0.113.0/24]}"
OUTSIDE = "{networkPolicy: {allowedClients: {outside-the-cluster: %s}}}"


@pytest.mark.parametrize(
    ("values", "key", "fix"),
    [
        ("{service: {type: NodePort}}", "tls.service", "service: NodePort"),
        (OUTSIDE % "{cidrs: [10.0.0.0/8]}", "tls.cidrs", "cidrs: [10.0.0.0/8]"),
        (OUTSIDE % "null", "tls.cidrs", "remove `outside-the-cluster`"),
    ],
    ids=["service", "cidrs", "removed"],
)
def test_override_of_the_tls_of_a_gateway_is_refused(values: str, key: str, fix: str) -> None:
    fleet = text().replace("      values: {}\n", f"      {TLS}\n      values: {values}\n", 1)
    with pytest.raises(FleetError) as caught:
        render_plan(plan_fleet(load(fleet)))
    (problem,) = caught.value.problems
    assert problem.message.endswith(f"Use `clusters.main.gateway.{key}` of the fleet file")
    assert fix in str(problem.fix)
    check_fixes(fleet, [problem], lambda fixed: render_plan(plan_fleet(load(fixed))))


@pytest.mark.parametrize(
    ("tls", "values", "expected"),
    [
        (False, "{service: {type: NodePort}}", ("NodePort", False)),
        (False, "{networkPolicy: {allowedClients: {apps: {cidrs: [10.0.0.0/8]}}}}", ("ClusterIP", True)),
        (True, "{networkPolicy: {allowedClients: {apps: {cidrs: [10.0.0.0/8]}}}}", ("LoadBalancer", True)),
    ],
    ids=["service", "cidrs", "cidrs-with-tls"],
)
def test_override_that_no_tls_decides_is_accepted(tls: bool, values: str, expected: tuple[str, bool]) -> None:
    lines = f"      {TLS}\n" if tls else ""
    fleet = text().replace("      values: {}\n", f"{lines}      values: {values}\n", 1)
    (gateway,) = (each.values for each in render_plan(plan_fleet(load(fleet))).releases if each.chart == "gateway")
    assert isinstance(gateway, GatewayValues)
    cidrs = {cidr for client in gateway.network_policy.allowed_clients.values() for cidr in client.cidrs}
    assert (gateway.service.type, "10.0.0.0/8" in cidrs) == expected


def test_override_that_repeats_the_plan_is_accepted() -> None:
    assert service(service="{workerGroups: {gpu: {maxReplicas: 1}}, tenant: apps}") == service()


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("service", "{nameOverride: other}", "`nameOverride` cannot be overridden: the gateway"),
        ("gateway", "{models: {other: {}}}", "`models.other` is not in the plan and cannot be added"),
        (
            "service",
            "{workerGroups: {extra: {resources: {limits: {cpu: 1, memory: 1Gi}}}}}",
            "`workerGroups.extra` is not in the plan and cannot be added",
        ),
        ("service", "{workerGroups: {gpu: null}}", "`workerGroups.gpu` cannot be overridden"),
        ("service", "{workerGroups: {gpu: {extraVolumes: [{emptyDir: {}}]}}}", "has no `name` that is a text"),
        ("pool", "{shmSze: 16Gi}", "unknown key `shmSze`; did you mean `shmSize`"),
        ("gateway", "{timeout: {serverSeconds: 1}}", "unknown key `timeout`; did you mean `timeouts`"),
        ("cluster", "{metrics: {adapter: {manage: true}}}", "unknown key `manage`; did you mean `image`"),
        ("gateway", "{global: {imageRegistri: registry.example}}", "unknown key `imageRegistri`; did you mean"),
        ("cluster", "{polices: {}}", "unknown key `polices`; did you mean `policies`"),
        ("service", "{head: {tolerations: [{key: a, operatr: Exists}]}}", "unknown key `operatr`"),
        ("service", "{head: {nodeSelector: {a b: c}}}", "`a b` is not a key of this map"),
        ("service", "{networkPolicy: {egress: {bucket: {ports: [443]}}}}", "`cidrs`: it is required"),
        ("tenant", "{kueu: {localQueue: a}}", "unknown key `kueu`; did you mean `kueue`"),
        (
            "tenant",
            "{quota: {gpuResources: [nvidia.com/gpu]}}",
            "`quota.gpuResources` cannot be overridden: they are the GPU",
        ),
        ("tenant", "{networkPolicy: {egress: {gateway: null}}}", "`networkPolicy.egress.gateway` cannot be overridden"),
        ("tenant", "{externalSecrets: {hub: {keys: {token: {key: a}}}}}", "`store`: it is required"),
        ("pool", "{shmSize: [1]}", "`[1]` must be a string"),
        ("pool", "{shmSize: 64 GB}", "`64 GB` does not match"),
        ("service", "{head: {minAvailable: two}}", "`two` must be a whole number"),
        ("service", "{head: {minAvailable: '1'}}", '`"1"` must be a number'),
        ("service", "{head: {minAvailable: true}}", "`true` must be a number"),
        ("service", "{suspend: 'true'}", '`"true"` must be true or false'),
        ("service", "{head: null}", "`null` must be a map"),
        ("service", "{upgrade: {strategy: Rolling}}", "`Rolling` is not one of"),
        ("service", "nonsense", "must be a map"),
    ],
)
def test_override_is_refused_with_its_line(part: str, values: str, message: str) -> None:
    problem = refuse(**{part: values})
    assert message in problem.message
    assert values in text(**{part: values}).splitlines()[(problem.line or 0) - 1]


def test_refused_override_of_a_value_that_is_empty_in_the_plan_is_removed() -> None:
    problem = refuse(gateway="{oidc: {issuer: 'ftp:x'}}")
    assert problem.fix_text == "# remove `issuer`"


def test_wrong_overrides_of_all_charts_are_reported_together() -> None:
    with pytest.raises(FleetError) as caught:
        render(cluster="{a: 1}", gateway="{b: 1}", pool="{c: 1}", service="{d: 1}")
    assert [problem.path for problem in caught.value.problems] == [
        "clusters.main.values.a",
        "pools.gpu.values.c",
        "services.chat.values.d",
    ]
    with pytest.raises(FleetError) as caught:
        render(cluster="{a: 1}", gateway="{b: 1}")
    assert [problem.path for problem in caught.value.problems] == [
        "clusters.main.values.a",
        "clusters.main.gateway.values.b",
    ]
    with pytest.raises(FleetError) as caught:
        render(cluster="{a: 1}", tenant="{b: 1}")
    assert [problem.path for problem in caught.value.problems] == ["clusters.main.values.a", "tenants.apps.values.b"]


@pytest.mark.parametrize("name", FLEETS)
def test_values_are_the_same_after_a_round_trip_as_data(name: str) -> None:
    """Overrides are merged as data."""
    for release in render_fleet(VALUES / name / "fleet.yaml").releases:
        values = release.values
        assert type(values).model_validate(values.model_dump(by_alias=True)) == values


@pytest.mark.parametrize("chart", CHARTS)
def test_planned_values_name_keys_of_the_chart_and_of_the_fleet_file(chart: str) -> None:
    for row in load_planned_values(chart):
        # The last star is the name of an entry, which has no field of its own.
        key = tuple(step if step != "*" else "name" for step in row.steps)
        assert field_at(CHARTS[chart], key) or model_at(CHARTS[chart], key), row.key
        assert bool(row.field) != bool(row.why), row.key
        if row.field:
            steps = tuple("name" if step.startswith("{") else step for step in row.field.split("."))
            assert field_at(Fleet, steps), row.field


TUNED = {
    "ray-service": (
        "head",  # sizes and disruption budgets: nothing else of the plan depends on them
        "workerGroups.*.resources",  # the chart refuses less CPU than replicas reserve
        "workerGroups.*.shmSize",
        "workerGroups.*.spread",
        "workerGroups.*.priorityClassName",
        "workerGroups.*.minAvailable",
        "serve.applications.*.ingress",
        "serve.applications.*.models.*.autoscaling",  # target and delays: the planner suggests them
        "serve.applications.*.models.*.maxOngoingRequests",
        "serve.applications.*.models.*.prefill.autoscaling",
        "serve.applications.*.models.*.prefill.maxOngoingRequests",
        "serve.applications.*.models.*.placementStrategy",
        "serve.applications.*.models.*.router",
        "serve.applications.*.models.*.env",
        "serve.customApplications.*.deployments.*",
        "networkPolicy.prometheus",
        "scraping",
    ),
    "gateway": (
        "models.*.spillAbove",
        "service.type",
        "priorityClassName",
        "autoscaling",
        "networkPolicy",
        "scraping",
        "exposure",
    ),
    "platform": ("policies", "metrics.scraping", "prometheusRules"),
    "tenant": ("quota.pods", "quota.objects", "quota.storage", "networkPolicy.allowed"),
}
"""Values that the plan sets, and that an override may change."""


@pytest.mark.parametrize("name", FLEETS)
def test_each_value_that_a_fleet_sets_is_planned_or_may_be_tuned(name: str) -> None:
    for release in render_fleet(VALUES / name / "fleet.yaml").releases:
        if release.chart not in CHARTS:
            continue
        known = [*(row.steps for row in load_planned_values(release.chart))]
        known += [tuple(each.split(".")) for each in TUNED[release.chart]]
        for key in list_leaves(select_changed(release.values)):
            assert any(match(pattern, key) for pattern in known), f"{release.chart}: {'.'.join(key)}"


def list_leaves(data: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from list_leaves(value, (*above, key))
    else:
        yield above


def match(pattern: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Return whether one of them is below the other."""
    return all(step in ("*", other) for step, other in zip(pattern, key, strict=False))


def test_types_of_charts_are_closed() -> None:
    assert all(issubclass(model, Closed) for model in CHARTS.values())
