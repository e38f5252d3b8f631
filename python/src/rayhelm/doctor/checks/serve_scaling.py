"""Every Ray Serve deployment that may scale has a target that is reached, and workers that can be added."""

import json
from collections.abc import Iterator

from rayhelm.cluster.kinds import RAY_SERVICES
from rayhelm.doctor.check import Check
from rayhelm.doctor.facts import Facts, Object
from rayhelm.doctor.failures import find_in_each
from rayhelm.doctor.finding import Finding, Severity, name_object
from rayhelm.doctor.plant import Change, Plant
from rayhelm.doctor.quantities import parse_quantity
from rayhelm.doctor.serve_config import ModelConfig, ServeConfigError, list_models

_NEVER = 1_000_000
"""A target above this is never reached: Ray Serve LLM sets 1e9 where none is given."""


def _find(facts: Facts) -> Iterator[Finding]:
    return find_in_each(facts.get_all(RAY_SERVICES), _find_in_service)


def _find_in_service(service: Object) -> Iterator[Finding]:
    for model in list_models(service["spec"].get("serveConfigV2", "")):
        if isinstance(model, ServeConfigError):
            yield _describe_malformed(service, model)
            continue
        yield from _find_target(service, model)
        yield from _find_workers(service, model)


def _describe_malformed(service: Object, error: ServeConfigError) -> Finding:
    return Finding(
        object=name_object(service),
        evidence=f"serveConfigV2: {error}"[:400],
        cause="Ray Serve cannot read this field, so it refuses the configuration; the scaling of the model is not"
        " checked",
        fix="# apply the values that `rayhelm render` writes",
    )


def _find_target(service: Object, model: ModelConfig) -> Iterator[Finding]:
    least, most, target = (
        model.scaling.min_replicas,
        model.scaling.max_replicas,
        model.scaling.target_ongoing_requests,
    )
    if (most or 1) > (1 if least is None else least) and (target is None or target > _NEVER):
        yield Finding(
            object=name_object(service),
            evidence=f"model {model.name}: {least}-{most} replicas, target_ongoing_requests {target}",
            cause="Ray Serve LLM sets a target of 1e9 where none is given, so the model never scales up",
            fix="# apply the values that `rayhelm render` writes: they set the target of every model",
        )


def _find_workers(service: Object, model: ModelConfig) -> Iterator[Finding]:
    """More replicas than the workers can hold: the last ones wait for GPUs that never come."""
    cluster = service["spec"]["rayClusterConfig"]
    groups = {group["groupName"]: group for group in cluster.get("workerGroupSpecs", [])}
    for resource in sorted({key for bundle in model.bundles for key in bundle if key.endswith(".worker-group")}):
        group = groups.get(resource.removesuffix(".worker-group"))
        if group is None:
            continue
        needed = model.most_replicas * sum(bundle.get("GPU", 0) for bundle in model.bundles if resource in bundle)
        count = float(parse_quantity(group.get("resources", {}).get("GPU", 0)))
        can_grow = bool(cluster.get("enableInTreeAutoscaling"))
        workers = group.get("maxReplicas", 0) if can_grow else group.get("replicas", group.get("minReplicas", 0))
        if needed > count * workers * group.get("numOfHosts", 1):
            yield Finding(
                object=name_object(service),
                evidence=f"model {model.name}: {model.most_replicas} replicas need {needed:g} GPUs of worker group"
                f" {group['groupName']},"
                f" which has at most {workers} workers with {count:g} GPUs"
                + ("" if can_grow else "; enableInTreeAutoscaling is off"),
                cause="the last replicas wait for GPUs that no worker brings",
                fix="# apply the values that `rayhelm render` writes: they size the worker groups for the replicas",
            )


def _config(target: float | None) -> str:
    scaling: Object = {"min_replicas": 1, "max_replicas": 4}
    if target is not None:
        scaling["target_ongoing_requests"] = target
    model = {
        "model_loading_config": {"model_id": "qwen3-32b"},
        "deployment_config": {"autoscaling_config": scaling},
        "placement_group_config": {"bundles": [{"GPU": 1, "lab-a5000.worker-group": 0.001}]},
    }
    return json.dumps({"applications": [{"name": "qwen3-32b", "args": {"llm_configs": [model]}}]}, indent=2)


CHECK = Check(
    title="scaling of Serve deployments",
    severity=Severity.warning,
    find=_find,
    reads=(RAY_SERVICES,),
    plants=(
        Plant(
            "A model that may scale has no target",
            "1-4 replicas, target_ongoing_requests None",
            "RayService lab/qwen3-32b",
            change=(Change(RAY_SERVICES, "qwen3-32b", "lab", {"spec": {"serveConfigV2": _config(None)}}),),
            is_only_recorded=True,
        ),
        Plant(
            "A model may have more replicas than its workers have GPUs",
            "4 replicas need 4 GPUs of worker group lab-a5000, which has at most 1 workers",
            "RayService lab/qwen3-32b",
            change=(Change(RAY_SERVICES, "qwen3-32b", "lab", {"spec": {"serveConfigV2": _config(4)}}),),
            is_only_recorded=True,
        ),
    ),
)
