"""What an edit of a fleet does to its RayServices, and an edit of the stand-ins with the same effect.

The stand-ins have no GPUs, other images, memory and engine arguments, so most edits of the fleet would not change them.
`rayhelm.check.forecast.edits` forecasts the effect from observations of KubeRay. Pure, except that helm renders the
charts.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal, TypeVar

from rayhelm.check.forecast.serve_config import compare_serve_configs, parse_serve_config
from rayhelm.check.forecast.service import Surroundings, forecast_service, install
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.groups import HeadPod, WorkerGpu, WorkerGroup
from rayhelm.deploy.values.ray_service.resources import build_resources
from rayhelm.deploy.values.ray_service.serve import AutoscalingPolicy, ModelAutoscaling, ServedModel
from rayhelm.run.rehearsal.without_gpus import StandInSet
from rayhelm.run.standin.cluster import GROUP

Pods = TypeVar("Pods", HeadPod, WorkerGroup)

__all__ = ["EDIT_VARIABLE", "ChangeStep", "Effect", "ServiceEdit", "classify_edit", "mirror_edits", "plan_steps"]

EDIT_VARIABLE = "RAYHELM_REHEARSED"
"""Environment variable of pods that represents every change of the pods by the edit."""

Effect = Literal[
    "install",
    "uninstall",
    "new cluster",  # KubeRay creates a second Ray cluster and moves the traffic to it
    "held back",  # as before, but `upgrade.strategy: None` prevents it
    "in place",  # KubeRay adds worker groups to the active cluster
    "serve config",  # Ray Serve receives another configuration
    "values",  # only other objects or fields without effect change
]

_CLUSTER = ("kuberay", "image", "ray", "auth", "head", "worker_groups", "autoscaler")
"""Values that are part of the pods."""
_IDLE = WorkerGroup(
    gpu=WorkerGpu(count=0),
    min_replicas=0,
    min_available=0,
    resources=build_resources(cpu="1", memory="1Gi"),
    shm_size="256Mi",
)
"""A group without workers."""


@dataclass(frozen=True)
class ServiceEdit:
    """What happens to one RayService."""

    effect: Effect
    details: tuple[str, ...]
    """Sentences for the report."""
    mark: str = ""
    """Digest of the new RayService."""
    applications: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Models with a new configuration, by application."""
    scaling: frozenset[str] = frozenset()
    """Models with a change of the autoscaling only."""
    added: tuple[str, ...] = ()
    """Worker groups that are added in place."""


@dataclass(frozen=True)
class ChangeStep:
    """One action on the cluster."""

    release: Release
    effect: Effect
    details: tuple[str, ...] = ()
    restarted: frozenset[str] = frozenset()
    """Models whose replicas Serve restarts."""


def classify_edit(release: Release, old: RayServiceValues, new: RayServiceValues) -> ServiceEdit:
    """Forecast what replacing the fleet's values `old` by `new` does to a service.

    Raises FleetError if the chart refuses the values for the operator that the release names.
    """
    assert isinstance(release.values, RayServiceValues)
    here = {"kuberay": release.values.kuberay}
    before, after = (_render_ray_service(release, values.model_copy(update=here)) for values in (old, new))
    found, _ = forecast_service(
        install(before, release.values.kuberay.version), after, Surroundings(release.values.kuberay.version)
    )
    configs = tuple(parse_serve_config(service["spec"]["serveConfigV2"]) for service in (before, after))
    change = compare_serve_configs(*configs)
    applications, scaling = change.restarted, change.scaled
    is_reconfigured = configs[0] != configs[1]
    mark = sha256(json.dumps(after["spec"], sort_keys=True).encode()).hexdigest()[:12]
    details = []
    effect: Effect = "values"
    if found.effect == "held back":
        effect = "held back"
        details.append(
            "the pods change, but `upgrade.strategy: None` prevents a second cluster, because the pool has no free"
            " GPUs for it. Add GPUs to the pool to use NewCluster, or run helm uninstall and install again"
        )
    elif found.effect in ("new cluster", "new cluster, waiting"):
        effect = "new cluster"
        details.append("the pods change: KubeRay creates a second cluster and moves the traffic when it is ready")
    elif found.effect == "in place":
        effect = "in place"
        details.append(
            f"KubeRay adds {', '.join(found.added_groups)} to the active cluster; they have no pods in a rehearsal"
        )
    else:
        effect = "serve config" if is_reconfigured else "values"
        if old.worker_groups != new.worker_groups:
            details.append(
                "minReplicas or maxReplicas of worker groups change. KubeRay does not apply them to the active"
                " cluster; they take effect with the next new cluster"
            )
    details += found.reasons if found.effect in ("invalid", "refused", "suspended", "new cluster, waiting") else ()
    if is_reconfigured and effect != "new cluster":
        names = ", ".join(sorted({*(model for models in applications.values() for model in models), *scaling}))
        details.append(f"Ray Serve receives another configuration{f' of {names}' if names else ''}")
    if old.weights != new.weights or _list_sources(old) != _list_sources(new):
        details.append("a rehearsal does not download weights")
    if scaling or _list_replica_limits(old) != _list_replica_limits(new):
        details.append("each stand-in has one replica: changed replica limits have no effect in a rehearsal")
    return ServiceEdit(effect, tuple(details), mark, applications, scaling, found.added_groups)


def mirror_edits(old: StandInSet, new: StandInSet) -> tuple[StandInSet, StandInSet, dict[str, ServiceEdit]]:
    """Change both stand-in sets so that the step from one to the other has the effect of the fleet's edit.

    Also returns the edit of each service that is in both.
    """
    edits: dict[str, ServiceEdit] = {}
    olds, news = _select_services(old), _select_services(new)
    for key in olds.keys() & news.keys():
        name = news[key].name
        edit = edits[name] = classify_edit(news[key], old.services[name], new.services[name])
        before, after = (
            _copy_autoscaling(olds[key].values, old.services[name]),
            _copy_autoscaling(news[key].values, new.services[name]),
        )
        if edit.effect not in ("new cluster", "held back"):
            before, after = _unify_cluster(before, after)
        olds[key] = replace(olds[key], values=before)
        news[key] = replace(news[key], values=_repeat_edit(before, after, edit))
    return _replace_services(old, olds), _replace_services(new, news), edits


def plan_steps(old: StandInSet, new: StandInSet, edits: Mapping[str, ServiceEdit]) -> list[ChangeStep]:
    """List the steps in their order: installs and upgrades from the platform up, then uninstalls in reverse."""
    installed = {_get_key(release): release for release in old.releases}
    wanted = {_get_key(release): release for release in new.releases}
    return [
        *(step for key, release in wanted.items() for step in _plan_step(installed.get(key), release, edits)),
        *(ChangeStep(release, "uninstall") for key, release in reversed(installed.items()) if key not in wanted),
    ]


def _plan_step(installed: Release | None, wanted: Release, edits: Mapping[str, ServiceEdit]) -> Iterator[ChangeStep]:
    if installed is None:
        yield ChangeStep(wanted, "install")
        return
    edit = edits.get(wanted.name) if wanted.chart == "ray-service" else None
    if installed.values != wanted.values or (edit and edit.details):
        restarted = (
            frozenset(model for models in edit.applications.values() for model in models) if edit else frozenset()
        )
        yield ChangeStep(wanted, edit.effect if edit else "values", edit.details if edit else (), restarted)


def _get_key(release: Release) -> tuple[str, str, str]:
    return release.chart, release.namespace, release.name


def _select_services(stand_ins: StandInSet) -> dict[tuple[str, str, str], Any]:
    return {
        _get_key(release): release for release in stand_ins.releases if isinstance(release.values, RayServiceValues)
    }


def _replace_services(stand_ins: StandInSet, services: Mapping[tuple[str, str, str], Release]) -> StandInSet:
    return replace(
        stand_ins, releases=tuple(services.get(_get_key(release), release) for release in stand_ins.releases)
    )


def _render_ray_service(release: Release, values: RayServiceValues) -> dict[str, Any]:
    objects = template(
        release.chart, release.name, release.namespace, select_changed(values), kube_version=release.kubernetes
    )
    return next(item for item in objects if item["kind"] == "RayService")


def _list_sources(values: RayServiceValues) -> dict[str, tuple[str, str]]:
    return {
        name: (model.source, model.revision)
        for application in values.serve.applications.values()
        for name, model in application.models.items()
    }


def _list_replica_limits(values: RayServiceValues) -> dict[str, tuple[int, int]]:
    return {
        name: (model.autoscaling.min_replicas, model.autoscaling.max_replicas)
        for application in values.serve.applications.values()
        for name, model in application.models.items()
    }


def _copy_autoscaling(small: RayServiceValues, own: RayServiceValues) -> RayServiceValues:
    """Copy the delays of the fleet's autoscaling and its shutdown time; keep one replica, because one fits."""

    def copy(application: str, name: str, model: ServedModel) -> ServedModel:
        original = own.serve.applications[application].models[name]
        usual = ModelAutoscaling(target_ongoing_requests=model.autoscaling.target_ongoing_requests)
        defaults = {
            "min_replicas": usual.min_replicas,
            "max_replicas": usual.max_replicas,
            "initial_replicas": None,
            "downscale_to_zero_delay_seconds": None,
            "target_ongoing_requests": usual.target_ongoing_requests,
            "policy": AutoscalingPolicy(),
        }
        seconds = min(original.graceful_shutdown_seconds, small.upgrade.deletion_delay_seconds)
        autoscaling = original.autoscaling.model_copy(update=defaults)
        return model.model_copy(update={"autoscaling": autoscaling, "graceful_shutdown_seconds": seconds})

    return _map_models(small, copy)


def _unify_cluster(before: RayServiceValues, after: RayServiceValues) -> tuple[RayServiceValues, RayServiceValues]:
    """Give both the same Ray cluster, which is large enough for the models of either."""
    larger = max(before, after, key=_count_models)
    group = before.worker_groups[GROUP].model_copy(update={"resources": larger.worker_groups[GROUP].resources})
    first = before.model_copy(update={"worker_groups": {GROUP: group}})
    return first, after.model_copy(update={name: getattr(first, name) for name in _CLUSTER})


def _count_models(values: RayServiceValues) -> int:
    return sum(len(application.models) for application in values.serve.applications.values())


def _repeat_edit(before: RayServiceValues, after: RayServiceValues, edit: ServiceEdit) -> RayServiceValues:
    """Return `after` with a change of the stand-in for each change of the fleet that it does not show."""
    seed = int(edit.mark, 16) % 2**31

    def set_seed(application: str, name: str, model: ServedModel) -> ServedModel:
        if name in edit.applications.get(application, ()):
            return model.model_copy(update={"engine": model.engine.model_copy(update={"seed": seed})})
        if name in edit.scaling and _find_autoscaling(before, application, name) == model.autoscaling:
            later = model.autoscaling.downscale_delay_seconds + 1
            update = {"autoscaling": model.autoscaling.model_copy(update={"downscale_delay_seconds": later})}
            return model.model_copy(update=update)
        return model

    marked = _map_models(after, set_seed)
    if edit.effect in ("new cluster", "held back"):
        groups = {name: _set_mark(group, edit.mark) for name, group in marked.worker_groups.items()}
        return marked.model_copy(update={"head": _set_mark(marked.head, edit.mark), "worker_groups": groups})
    if edit.added:
        # The chart sorts groups by name, so these are last, as in the fleet.
        same = {"priority_class_name": marked.worker_groups[GROUP].priority_class_name}
        idle = {f"{GROUP}-{name}": _IDLE.model_copy(update=same) for name in edit.added}
        return marked.model_copy(update={"worker_groups": {**marked.worker_groups, **idle}})
    return marked


def _find_autoscaling(values: RayServiceValues, application: str, name: str) -> ModelAutoscaling | None:
    found = values.serve.applications.get(application)
    model = found.models.get(name) if found else None
    return model.autoscaling if model else None


def _set_mark(pods: Pods, mark: str) -> Pods:
    return pods.model_copy(update={"env": {**pods.env, EDIT_VARIABLE: mark}})


def _map_models(values: RayServiceValues, change: Callable[[str, str, ServedModel], ServedModel]) -> RayServiceValues:
    applications = {
        name: application.model_copy(
            update={"models": {key: change(name, key, model) for key, model in application.models.items()}}
        )
        for name, application in values.serve.applications.items()
    }
    return values.model_copy(update={"serve": values.serve.model_copy(update={"applications": applications})})
