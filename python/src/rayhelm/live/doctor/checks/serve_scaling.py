"""Every Ray Serve deployment that may scale has a target that is reached, and workers that can be added."""

from collections.abc import Iterator

from rayhelm.facts.quantities import parse_quantity
from rayhelm.live.cluster.kinds import RAY_SERVICES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.live.doctor.serve_config import ModelConfig, ServeConfigError, list_models

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


CHECK = Check(
    title="scaling of Serve deployments",
    severity=Severity.warning,
    find=_find,
    reads=(RAY_SERVICES,),
)
