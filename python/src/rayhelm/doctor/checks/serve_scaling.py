"""Every Ray Serve deployment that may scale has a target that is reached, and workers that can be added."""

import json
from collections.abc import Iterator
from typing import Any

from rayhelm.cluster.kinds import RAY_SERVICES
from rayhelm.doctor.check import Check
from rayhelm.doctor.facts import Facts, Object
from rayhelm.doctor.finding import Finding, Severity, name_object
from rayhelm.doctor.plant import Change, Plant
from rayhelm.serve_models import list_engine_configs

_NEVER = 1_000_000
"""A target above this is never reached: Ray Serve LLM sets 1e9 where none is given."""


def _find(facts: Facts) -> Iterator[Finding]:
    for service in facts.get_all(RAY_SERVICES):
        try:
            config = json.loads(service["spec"].get("serveConfigV2") or "{}")
        except ValueError:
            continue  # not rayhelm's form; the admission policy serve-config-form refuses it
        for application in config.get("applications") or []:
            for model in list_engine_configs(application):
                name = (model.get("model_loading_config") or {}).get("model_id", "?")
                yield from _find_target(service, name, model)
                yield from _find_workers(service, name, model)


def _find_target(service: Object, model: str, config: dict[str, Any]) -> Iterator[Finding]:
    scaling = (config.get("deployment_config") or {}).get("autoscaling_config") or {}
    target = scaling.get("target_ongoing_requests")
    if scaling.get("max_replicas", 1) > scaling.get("min_replicas", 1) and (target is None or target > _NEVER):
        yield Finding(
            object=name_object(service),
            evidence=f"model {model}: {scaling.get('min_replicas')}-{scaling.get('max_replicas')} replicas,"
            f" target_ongoing_requests {target}",
            cause="Ray Serve LLM sets a target of 1e9 where none is given, so the model never scales up",
            fix="# apply the values that `rayhelm render` writes: they set the target of every model",
        )


def _find_workers(service: Object, model: str, config: dict[str, Any]) -> Iterator[Finding]:
    """More replicas than the workers can hold: the last ones wait for GPUs that never come."""
    scaling = (config.get("deployment_config") or {}).get("autoscaling_config") or {}
    replicas = scaling.get("max_replicas") or (config.get("deployment_config") or {}).get("num_replicas") or 1
    bundles = (config.get("placement_group_config") or {}).get("bundles") or []
    cluster = service["spec"]["rayClusterConfig"]
    groups = {group["groupName"]: group for group in cluster.get("workerGroupSpecs") or []}
    for resource in sorted({key for bundle in bundles for key in bundle if key.endswith(".worker-group")}):
        group = groups.get(resource.removesuffix(".worker-group"))
        if group is None:
            continue
        needed = replicas * sum(float(bundle.get("GPU", 0)) for bundle in bundles if resource in bundle)
        count = float((group.get("resources") or {}).get("GPU", 0))
        can_grow = bool(cluster.get("enableInTreeAutoscaling"))
        workers = group.get("maxReplicas", 0) if can_grow else group.get("replicas", group.get("minReplicas", 0))
        if needed > count * workers * group.get("numOfHosts", 1):
            yield Finding(
                object=name_object(service),
                evidence=f"model {model}: {replicas} replicas need {needed:g} GPUs of worker group"
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
