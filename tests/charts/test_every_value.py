"""Each value of each chart has an effect: a changed value changes the render, or is refused."""

import json
from collections.abc import Iterator
from functools import cache, reduce
from typing import Any, Literal, get_args, get_origin

import pytest

from charts.each_chart import CHARTS, Chart, Values, chart_of
from charts.kit import accepted_first, example, over
from rayhelm.deploy.charts.shape import keys
from rayhelm.errors import FleetError

BY_THE_SCHEMA = "refused by the schema"
WITHOUT_EFFECT = {("autoscaler", "version"), ("networkPolicy", "apiServer", "lookup")}
"""A key with one choice, and one that needs a cluster."""
WITHOUT_PODS = {"argocd", "tenant"}
"""Charts for which the globals of images have no effect."""
AT_ONE_ENTRY = {"argocd", "gateway"}
"""Charts whose maps have entries of several kinds: a key has to act in one of them. Not every model of the gateway has
several endpoints, or a `host`."""
Path = tuple[str, ...]


@cache
def fullest(chart: Chart) -> Values:
    """The example with every value, completed by the model."""
    values = example("everything" if chart.name == "ray-service" else f"{chart.name}/everything")
    return chart.model.model_validate(values).model_dump(by_alias=True, exclude_none=True, mode="json")


def of_model(values: Values) -> Values:
    return {"serve": {"applications": {"mixed": {"models": {"org/some-model.v1": values}}}}}


MODEL = "serve.applications.mixed.models.org/some-model.v1"
HUB = of_model({"source": "org/some-model"})
BUCKET = {
    **of_model({"source": "s3://bucket/some-model", "revision": "f" * 64}),
    "networkPolicy": {"bucket": {"cidrs": ["0.0.0.0/0"]}},
}
PREFIX_AFFINITY = of_model({"router": {"kind": "PrefixAffinity"}})
RDMA = {"workerGroups": {"fast": {"rdma": {"resource": "rdma/hca"}}}}
WITH_BUDGET = {
    **of_model(
        {"autoscaling": {"minReplicas": 4, "initialReplicas": 4, "maxReplicas": 8, "downscaleToZeroDelaySeconds": None}}
    ),
    "workerGroups": {"fast": {"minReplicas": 2, "maxReplicas": 4}},
}
"""More pods than `minAvailable`: a drain ends."""
QUANTILE = {"series": ["ray_vllm_time_to_first_token_seconds"], "aggregate": "Quantile"}
MIG = {"gpu": "H100-SXM-80GB", "mig": {"3g.40gb": 1}, "replicas": 0}
ENABLED = {"prometheusRules": {"alerts": {"GpuXidError": {"disabledReason": ""}}}}
HOST = {"here": {"host": "rank.example", "service": ""}}
OTHER_REMOTE = {
    "host": "ap.example",
    "secretName": "ap",
    "priority": 3,
    "models": {"llama-8b": ["stable"]},
    "certificateAuthority": {"configMapName": "ca"},
    "cidrs": ["203.0.113.11/32"],
}
UPSTREAM_TLS = {
    "upstreamTls": {"certificateAuthority": {"configMapName": "serve-ca"}},
    "models": {"llama-8b": {"versions": {"stable": {"endpoints": {"here": {"tls": True, "serverName": "chat"}}}}}},
}
NEEDED: dict[str, dict[str, Values]] = {
    "ray-service": {
        "auth.reason": {"auth": {"mode": "disabled", "reason": "x"}},
        "networkPolicy.reason": {"networkPolicy": {"enabled": False, "reason": "x"}},
        "networkPolicy.redis.peer.podLabels": {"networkPolicy": {"redis": {"peer": {"namespace": "redis"}}}},
        "networkPolicy.bucket": BUCKET,
        "networkPolicy.bucket.peer.podLabels": {
            **BUCKET,
            "networkPolicy": {"bucket": {"peer": {"namespace": "object-store"}, "cidrs": ["0.0.0.0/0"]}},
        },
        "weights.download.bucket": BUCKET,
        "weights.download.exclude": HUB,
        "weights.download.extraEnv": HUB,
        f"{MODEL}.revision": HUB,
        f"{MODEL}.tokenizerRevision": of_model({"tokenizer": "org/tokenizer"}),
        f"{MODEL}.router.imbalanceThreshold": PREFIX_AFFINITY,
        f"{MODEL}.router.matchRateThreshold": PREFIX_AFFINITY,
        "clusterDomain": {
            "upgrade": {"strategy": "NewCluster"},
            "networkPolicy": {"allowedGateways": {"clients": {"namespace": "ai-ml"}}},
        },
        "workerGroups.fast.rdma.hca": RDMA,
        "workerGroups.fast.rdma.count": RDMA,
        "workerGroups.fast.minAvailable": WITH_BUDGET,
        "podDisruptionBudget": WITH_BUDGET,
    },
    "gateway": {
        "replicas": {"autoscaling": {"kind": "None"}},
        "networkPolicy.reason": {"networkPolicy": {"enabled": False, "reason": "x"}},
        "remoteGateways.us.priority": {"remoteGateways": {"ap": OTHER_REMOTE}},
        "remoteGateways.us.weight": {"remoteGateways": {"ap": {**OTHER_REMOTE, "priority": 2}}},
        "upstreamTls": UPSTREAM_TLS,
        "models.llama-8b.versions.stable.endpoints.here.serverName": UPSTREAM_TLS,
        "exposure.tls": {"exposure": {"kind": "TLS", "tls": {"secretNames": ["ai-tls"]}}},
        "exposure.httpRoute": {"exposure": {"kind": "HTTPRoute", "httpRoute": {"parent": {"name": "public"}}}},
        "exposure.ingress.tlsReason": {"exposure": {"ingress": {"tlsSecret": "", "tlsReason": "x"}}},
        "autoscaling.keda": {"autoscaling": {"kind": "KEDA", "keda": {"serverAddress": "http://prometheus:9090"}}},
        "models.rank.versions.v1.endpoints.here.peer.podLabels": {
            "models": {"rank": {"versions": {"v1": {"endpoints": HOST}}}}
        },
    },
    "argocd": {},
    "tenant": {
        "podSecurity.reason": {"podSecurity": {"level": "baseline"}},
        "quota.deniedPriorityClasses": {"quota": {"allowedPriorityClasses": ["rayhelm-workers", "added"]}},
    },
    "platform": {
        "networkPolicy.reason": {"networkPolicy": {"enabled": False, "reason": "x"}},
        **{f"prometheusRules.alerts.GpuXidError.{key}": ENABLED for key in ("severity", "for")},
        **{f"nvidia.pools.{name}.gpu": {"nvidia": {"pools": {name: MIG}}} for name in ("sliced", "bounded")},
        "nvidia.pools.isolated.strategy": {
            "nvidia": {"pools": {"isolated": {"mig": {"3g.40gb": None, "1g.10gb": None}, "replicas": 2}}}
        },
        **{
            f"metrics.rules.{name}.quantile": {"metrics": {"rules": {name: QUANTILE}}}
            for name in ("rayhelm_preemptions", "haproxy_requests_waiting")
        },
        **{
            f"policies.{name}.reason": {"policies": {name: {"action": "Warn", "reason": "two services break it"}}}
            for name, policy in fullest(chart_of("platform"))["policies"].items()
            if policy.get("action") == "Deny"
        },
        "dashboards.folderAnnotation": {"dashboards": {"kind": "ConfigMap"}},
        "metrics.adapter.tls.skipVerifyReason": {
            "metrics": {"adapter": {"tls": {"caBundle": "", "skipVerifyReason": "x"}}}
        },
    },
}
"""Other values that a key, or every key below it, needs to have an effect."""
LARGE: dict[str, dict[str, Values]] = {
    "platform": {
        "dashboards": {"dashboards": {"kind": "None"}},
        "policies": {
            "policies": {
                name: {"action": "off", "reason": "x"}
                for name, policy in fullest(chart_of("platform"))["policies"].items()
                if "action" in policy
            }
        },
    }
}
"""Parts that take half of the time of a render. They are off while a key of another part changes."""

MAPS: list[Any] = [
    {"added": 1},
    {"added": "x"},
    {"ADDED": "1"},
    {"namespace": "added"},
    {"added": {"namespace": "x"}},
    {"/added": {}},
    {"llama-8b": "stable"},
    {"added": {"cidrs": ["10.0.0.0/8"], "ports": [1]}},
    {"added": {"cidrs": ["10.0.0.0/8"]}},
    {"nvidia.com/gpu": 1},
    {"3g.40gb": 1},
    {"added": "a reason of its own"},
    {"priority": "a reason of its own"},
]
LISTS: list[Any] = [
    ["added"],
    ["added/x"],
    [7],
    [{"key": "added", "operator": "Exists"}],
    ["10.9.0.0/16"],
    ["10.9.0.1:53"],
    ["RS256"],
    [],
    [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}}],
    [{"name": "added", "image": "added:1"}],
]
TEXTS = [
    *("changed", "", "/changed", "example.com/gpu", "1Gi", "4Gi", "3", "7", "1m", "5m", "7m", "127.0.0.1", "2.61.0"),
    *("v1.35", "v1beta2", "restricted", "intel/intel-gpu-plugin:0.35.0", "http://changed"),
    *("f" * 40, f"sha256:{'f' * 64}", f"registry.example/added@sha256:{'f' * 64}"),
]


def leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif path not in WITHOUT_EFFECT:
        yield path, node


def others(value: Any) -> list[Any]:
    """Return values that differ from this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1, value * 2, value / 2, 0, 0.5, (value + 1) / 2]
    if isinstance(value, dict):
        return MAPS
    if isinstance(value, list):
        return LISTS
    return [f"{value}x", *TEXTS]


def known(chart: Chart, path: Path) -> tuple[str, tuple[Any, ...]]:
    """Return the path with `<name>` for chosen names, and the choices of an enumeration.

    Entries of a plain map count as the map."""
    model: Any = chart.model
    annotation: Any = None
    found, parts = [], iter(path)
    for part in parts:
        found.append(part)
        key = next(item for item in keys(model) if item.name == part)
        annotation, model = key.field.annotation, key.section or key.entry
        if key.entry and next(parts, None):
            found.append("<name>")
        if not model:
            break
    types = [each for each in get_args(annotation) if each is not type(None)]
    annotation = types[0] if len(types) == 1 and get_origin(annotation) not in (Literal, list) else annotation
    return ".".join(found), get_args(annotation) if get_origin(annotation) is Literal else ()


def changed(values: Values, path: Path, value: Any) -> Any:
    text = "".join(f"{{{json.dumps(key)}: " for key in path) + json.dumps(value) + "}" * len(path)
    return over(values, json.loads(text))


@cache
def outcome(chart: Chart, values: str) -> str:
    try:
        return chart.text(json.loads(values))
    except FleetError as error:
        return error.problems[0].rule or BY_THE_SCHEMA


def acts(chart: Chart, path: Path, value: Any) -> bool:
    name = ".".join(path)
    needed = next((overlay for start, overlay in NEEDED[chart.name].items() if f"{name}.".startswith(f"{start}.")), {})
    large = LARGE.get(chart.name, {})
    values = reduce(over, [*(off for part, off in large.items() if part != path[0]), needed], fullest(chart))
    before = outcome(chart, json.dumps(values))
    assert before.startswith("---"), before
    candidates = (changed(values, path, other) for other in known(chart, path)[1] or others(value))
    return any(
        outcome(chart, json.dumps(each)) not in (before, BY_THE_SCHEMA)
        for each in accepted_first(chart.model, candidates)
    )


def places() -> Iterator[Any]:
    """Each key, with the places where it may act."""
    for chart in CHARTS:
        found: dict[str, list[tuple[Path, Any]]] = {}
        for path, value in leaves(fullest(chart)):
            if path[0] == "global" and chart.name in WITHOUT_PODS:
                continue
            name = known(chart, path)[0] if chart.name in AT_ONE_ENTRY else ".".join(path)
            found.setdefault(name, []).append((path, value))
        yield from (pytest.param(chart, where, id=f"{chart}-{name}") for name, where in found.items())


@pytest.mark.parametrize(("chart", "where"), places())
def test_every_value_has_an_effect(chart: Chart, where: list[tuple[Path, Any]]) -> None:
    assert any(acts(chart, path, value) for path, value in where)
