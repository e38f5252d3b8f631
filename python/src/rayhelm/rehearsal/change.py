"""What an edit of a fleet does to its RayServices, and the same edit of the stand-ins, which would swallow most of it:
image, cards, memory and the engine's arguments are not theirs. Pure but for helm, which renders.

`rayhelm.forecast.observed` has what KubeRay was seen to do with each kind of edit.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal, TypeVar

from rayhelm.charts.helm import template
from rayhelm.rehearsal.without_gpus import StandInSet
from rayhelm.render.releases import Release
from rayhelm.standin.cluster import GROUP
from rayhelm.values.emit import select_changed
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.ray_service.groups import HeadPod, Resources, WorkerGpu, WorkerGroup
from rayhelm.values.ray_service.serve import AutoscalingPolicy, ModelAutoscaling, ServedModel

Pods = TypeVar("Pods", HeadPod, WorkerGroup)

__all__ = ["EDIT_VARIABLE", "ChangeStep", "Effect", "ServiceEdit", "classify_edit", "mirror_edits", "plan_steps"]

EDIT_VARIABLE = "RAYHELM_REHEARSED"
"""Environment variable that stands for whatever the edit changes in pods."""

Effect = Literal[
    "install",
    "uninstall",
    "new cluster",  # KubeRay builds a second Ray cluster, and moves the traffic
    "held back",  # it would, but for `upgrade.strategy: None`
    "in place",  # worker groups at the end are added to the cluster that serves
    "serve config",  # Ray Serve is told another configuration
    "values",  # objects beside the RayService
]

_CLUSTER = ("kuberay", "image", "ray", "auth", "head", "worker_groups", "autoscaler")
"""Values that pods are made of."""
_IDLE = WorkerGroup(
    gpu=WorkerGpu(count=0),
    min_replicas=0,
    min_available=0,
    resources=Resources(cpu="1", memory="1Gi"),
    shm_size="256Mi",
)
"""A group without workers."""


@dataclass(frozen=True)
class ServiceEdit:
    """What becomes of one RayService."""

    effect: Effect
    details: tuple[str, ...]
    """A sentence each."""
    mark: str = ""
    """Digest of the RayService that is asked for."""
    applications: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Models that are configured anew, by application."""
    scaling: frozenset[str] = frozenset()
    """Models of which nothing but the autoscaling is edited."""
    added: tuple[str, ...] = ()
    """Worker groups that are added in place."""


@dataclass(frozen=True)
class ChangeStep:
    """One thing that is done to the cluster."""

    release: Release
    effect: Effect
    details: tuple[str, ...] = ()
    again: frozenset[str] = frozenset()
    """Models whose replicas Serve starts again."""


def classify_edit(release: Release, old: RayServiceValues, new: RayServiceValues) -> ServiceEdit:
    """The fleet's own values, before and after. Raises FleetError where the chart refuses them for the operator that
    the release names."""
    assert isinstance(release.values, RayServiceValues)
    here = {"kuberay": release.values.kuberay}
    before, after = (_ray_service(release, values.model_copy(update=here)) for values in (old, new))
    was, asked = (_hashed(spec["rayClusterConfig"]) for spec in (before, after))
    applications, scaling = _applications(before["serveConfigV2"], after["serveConfigV2"])
    told = before["serveConfigV2"] != after["serveConfigV2"]
    added = _added(was, asked)
    mark = sha256(json.dumps(after, sort_keys=True).encode()).hexdigest()[:12]
    details = []
    if was == asked:
        effect: Effect = "serve config" if told else "values"
        if old.worker_groups != new.worker_groups:
            details.append(
                "the bounds of worker groups change, which KubeRay does not tell the cluster that serves: they hold"
                " from the next new cluster on"
            )
    elif added:
        effect = "in place"
        details.append(f"KubeRay adds {', '.join(added)} to the cluster that serves; no pod is in them here")
    elif new.upgrade.strategy == "None":
        effect = "held back"
        details.append(
            "its pods change, and nothing happens: `upgrade.strategy` is None, for a second cluster has no room."
            " More cards in the pool let it be NewCluster; without them: helm uninstall, and install anew"
        )
    else:
        effect = "new cluster"
        details.append("its pods change: KubeRay builds a second cluster, and moves the traffic when that is ready")
    if told and effect != "new cluster":
        names = ", ".join(sorted({*(model for models in applications.values() for model in models), *scaling}))
        details.append(f"Ray Serve is told another configuration{f' of {names}' if names else ''}")
    if old.weights != new.weights or _sources(old) != _sources(new):
        details.append("weights are not fetched in a rehearsal")
    if scaling or _bounds(old) != _bounds(new):
        details.append("one replica of each model stands in: bounds of replicas change nothing here")
    return ServiceEdit(effect, tuple(details), mark, applications, frozenset(scaling), added)


def mirror_edits(old: StandInSet, new: StandInSet) -> tuple[StandInSet, StandInSet, dict[str, ServiceEdit]]:
    """Both casts, changed such that going from one to the other asks of KubeRay and Serve what going from the old fleet
    to the new one does; and the edit of each service that is in both."""
    edits: dict[str, ServiceEdit] = {}
    olds, news = _services(old), _services(new)
    for key in olds.keys() & news.keys():
        name = news[key].name
        edit = edits[name] = classify_edit(news[key], old.services[name], new.services[name])
        before, after = _carried(olds[key].values, old.services[name]), _carried(news[key].values, new.services[name])
        if edit.effect not in ("new cluster", "held back"):
            before, after = _same_cluster(before, after)
        olds[key] = replace(olds[key], values=before)
        news[key] = replace(news[key], values=_marked(before, after, edit))
    return _with(old, olds), _with(new, news), edits


def plan_steps(old: StandInSet, new: StandInSet, edits: Mapping[str, ServiceEdit]) -> list[ChangeStep]:
    """In the order in which they are made: what stays or comes, ground first; then what goes, the other way round."""
    there = {_key(release): release for release in old.releases}
    wanted = {_key(release): release for release in new.releases}
    return [
        *(step for key, release in wanted.items() for step in _step(there.get(key), release, edits)),
        *(ChangeStep(release, "uninstall") for key, release in reversed(there.items()) if key not in wanted),
    ]


def _step(there: Release | None, wanted: Release, edits: Mapping[str, ServiceEdit]) -> Iterator[ChangeStep]:
    if there is None:
        yield ChangeStep(wanted, "install")
        return
    edit = edits.get(wanted.name) if wanted.chart == "ray-service" else None
    if there.values != wanted.values or (edit and edit.details):
        again = frozenset(model for models in edit.applications.values() for model in models) if edit else frozenset()
        yield ChangeStep(wanted, edit.effect if edit else "values", edit.details if edit else (), again)


def _key(release: Release) -> tuple[str, str, str]:
    return release.chart, release.namespace, release.name


def _services(stand_ins: StandInSet) -> dict[tuple[str, str, str], Any]:
    return {_key(release): release for release in stand_ins.releases if isinstance(release.values, RayServiceValues)}


def _with(stand_ins: StandInSet, services: Mapping[tuple[str, str, str], Release]) -> StandInSet:
    return replace(stand_ins, releases=tuple(services.get(_key(release), release) for release in stand_ins.releases))


def _ray_service(release: Release, values: RayServiceValues) -> dict[str, Any]:
    objects = template(
        release.chart, release.name, release.namespace, select_changed(values), kube_version=release.kubernetes
    )
    spec: dict[str, Any] = next(item["spec"] for item in objects if item["kind"] == "RayService")
    return {**spec, "serveConfigV2": json.loads(spec["serveConfigV2"])}


def _hashed(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """What KubeRay compares: everything but bounds, tolerations, gates and the strategy."""
    asked = deepcopy(dict(cluster))
    asked.pop("upgradeStrategy", None)
    for group in asked.get("workerGroupSpecs", ()):
        for bound in ("replicas", "minReplicas", "maxReplicas"):
            group.pop(bound, None)
    for group in (asked["headGroupSpec"], *asked.get("workerGroupSpecs", ())):
        for free in ("tolerations", "schedulingGates"):
            group["template"]["spec"].pop(free, None)
    return asked


def _added(was: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Worker groups at the end of those that were there, where nothing else is edited."""
    groups, wanted = was.get("workerGroupSpecs", []), asked.get("workerGroupSpecs", [])
    others = [{key: value for key, value in each.items() if key != "workerGroupSpecs"} for each in (was, asked)]
    if others[0] != others[1] or wanted[: len(groups)] != groups:
        return ()
    return tuple(group["groupName"] for group in wanted[len(groups) :])


def _applications(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Models that are configured anew, by application; and those of which only the autoscaling is edited."""
    was = {each["name"]: each for each in before["applications"]}
    anew: dict[str, frozenset[str]] = {}
    scaling: set[str] = set()
    for wanted in after["applications"]:
        there = was.get(wanted["name"])
        if there is None or there == wanted or "llm_configs" not in wanted.get("args", {}):
            continue
        old, new = _models(there), _models(wanted)
        edited = {name for name in new if name in old and _unscaled(old[name]) != _unscaled(new[name])}
        scaled = {name for name in new if name in old and old[name] != new[name]} - edited
        beside = _unscaled(there, models=False) != _unscaled(wanted, models=False)
        # Nothing of a model differs but something around them: all of the application is deployed again.
        anew[wanted["name"]] = frozenset(edited or (new if beside and not scaled else ()))
        scaling |= scaled
    return {name: models for name, models in anew.items() if models}, frozenset(scaling)


def _models(application: Mapping[str, Any]) -> dict[str, Any]:
    configs = application.get("args", {}).get("llm_configs", [])
    return {config["model_loading_config"]["model_id"]: config for config in configs}


def _unscaled(part: Mapping[str, Any], *, models: bool = True) -> Any:
    """A part of the configuration without its autoscaling, and without models where those are asked for apart."""
    left = deepcopy(dict(part))
    if not models:
        left["args"] = {key: value for key, value in left["args"].items() if key != "llm_configs"}
    left.get("deployment_config", {}).pop("autoscaling_config", None)
    return left


def _sources(values: RayServiceValues) -> dict[str, tuple[str, str]]:
    return {
        name: (model.source, model.revision)
        for application in values.serve.applications.values()
        for name, model in application.models.items()
    }


def _bounds(values: RayServiceValues) -> dict[str, tuple[int, int]]:
    return {
        name: (model.autoscaling.min_replicas, model.autoscaling.max_replicas)
        for application in values.serve.applications.values()
        for name, model in application.models.items()
    }


def _carried(small: RayServiceValues, own: RayServiceValues) -> RayServiceValues:
    """With the delays of the fleet's own autoscaling, and the time that it gives requests to end; replicas stay one,
    for there is room for one."""

    def carried(application: str, name: str, model: ServedModel) -> ServedModel:
        their = own.serve.applications[application].models[name]
        usual = ModelAutoscaling(target_ongoing_requests=model.autoscaling.target_ongoing_requests)
        kept = {
            "min_replicas": usual.min_replicas,
            "max_replicas": usual.max_replicas,
            "initial_replicas": None,
            "downscale_to_zero_delay_seconds": None,
            "target_ongoing_requests": usual.target_ongoing_requests,
            "policy": AutoscalingPolicy(),
        }
        seconds = min(their.graceful_shutdown_seconds, small.upgrade.deletion_delay_seconds)
        autoscaling = their.autoscaling.model_copy(update=kept)
        return model.model_copy(update={"autoscaling": autoscaling, "graceful_shutdown_seconds": seconds})

    return _each_model(small, carried)


def _same_cluster(before: RayServiceValues, after: RayServiceValues) -> tuple[RayServiceValues, RayServiceValues]:
    """One Ray cluster that is large enough for the models of both."""
    larger = max(before, after, key=_models_in)
    group = before.worker_groups[GROUP].model_copy(update={"resources": larger.worker_groups[GROUP].resources})
    first = before.model_copy(update={"worker_groups": {GROUP: group}})
    return first, after.model_copy(update={name: getattr(first, name) for name in _CLUSTER})


def _models_in(values: RayServiceValues) -> int:
    return sum(len(application.models) for application in values.serve.applications.values())


def _marked(before: RayServiceValues, after: RayServiceValues, edit: ServiceEdit) -> RayServiceValues:
    """`after` with something in place of each thing that the stand-in swallowed."""
    seed = int(edit.mark, 16) % 2**31

    def seeded(application: str, name: str, model: ServedModel) -> ServedModel:
        if name in edit.applications.get(application, ()):
            return model.model_copy(update={"engine": model.engine.model_copy(update={"seed": seed})})
        if name in edit.scaling and _autoscaling(before, application, name) == model.autoscaling:
            later = model.autoscaling.downscale_delay_seconds + 1
            update = {"autoscaling": model.autoscaling.model_copy(update={"downscale_delay_seconds": later})}
            return model.model_copy(update=update)
        return model

    marked = _each_model(after, seeded)
    if edit.effect in ("new cluster", "held back"):
        groups = {name: _named(group, edit.mark) for name, group in marked.worker_groups.items()}
        return marked.model_copy(update={"head": _named(marked.head, edit.mark), "worker_groups": groups})
    if edit.added:
        # The chart sorts groups by name: these come last, as they do in the fleet.
        alike = {"priority_class_name": marked.worker_groups[GROUP].priority_class_name}
        idle = {f"{GROUP}-{name}": _IDLE.model_copy(update=alike) for name in edit.added}
        return marked.model_copy(update={"worker_groups": {**marked.worker_groups, **idle}})
    return marked


def _autoscaling(values: RayServiceValues, application: str, name: str) -> ModelAutoscaling | None:
    there = values.serve.applications.get(application)
    model = there.models.get(name) if there else None
    return model.autoscaling if model else None


def _named(pods: Pods, mark: str) -> Pods:
    return pods.model_copy(update={"env": {**pods.env, EDIT_VARIABLE: mark}})


def _each_model(values: RayServiceValues, change: Callable[[str, str, ServedModel], ServedModel]) -> RayServiceValues:
    applications = {
        name: application.model_copy(
            update={"models": {key: change(name, key, model) for key, model in application.models.items()}}
        )
        for name, application in values.serve.applications.items()
    }
    return values.model_copy(update={"serve": values.serve.model_copy(update={"applications": applications})})
