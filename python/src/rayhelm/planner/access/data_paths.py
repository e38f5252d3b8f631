"""The way of requests inside the Ray cluster of each service: `serve.dataPath` of chart `ray-service`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.tasks import DATA_PATHS, DataPath, get_task
from rayhelm.facts.versions import versions
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import ModelPlan, ServicePlan

__all__ = ["choose_data_path", "find_weakest_data_path"]


def choose_data_path(service: str, wanted: str, models: Sequence[ModelPlan], fleet: Fleet) -> tuple[DataPath, str]:
    """Return the data path of a service, and why. Raises FleetError if the fleet file names one that cannot work."""
    if wanted == "Python":
        return "Python", _describe_python(service, fleet)
    without_haproxy = list(_list_haproxy_obstacles(models, fleet))
    without_direct = list(_list_direct_obstacles(models, fleet))
    if wanted == "Auto":
        return _choose(models, fleet, without_haproxy, without_direct)
    fallback = "Python" if without_haproxy else "HAProxy"
    if obstacles := without_haproxy + (without_direct if wanted == "Direct" else []):
        raise FleetError([_build_problem(service, wanted, fallback, obstacles)])
    path: DataPath = "Direct" if wanted == "Direct" else "HAProxy"
    unseen = list(_list_unseen(path, models, fleet))
    note = f". Not run, or worse, with it: {'; '.join(unseen)}" if unseen else ""
    return path, f"set in the fleet file{note}"


def find_weakest_data_path(services: Iterable[str], plans: Mapping[str, ServicePlan]) -> DataPath:
    """Return the data path with the fewest routes among those of services that serve one model."""
    return min((plans[service].data_path for service in services), key=DATA_PATHS.index, default="Python")


def _describe_python(service: str, fleet: Fleet) -> str:
    declared = fleet.services.get(service)
    if declared and "data_path" in declared.model_fields_set:
        return "set in the fleet file"
    return "the default: every setting of a fleet file was run with it"


def _choose(
    models: Sequence[ModelPlan], fleet: Fleet, without_haproxy: list[str], without_direct: list[str]
) -> tuple[DataPath, str]:
    if without_haproxy:
        return "Python", "; ".join(without_haproxy)
    path: DataPath = "HAProxy" if without_direct else "Direct"
    if unseen := list(_list_unseen(path, models, fleet)):
        return "Python", f"not run, or worse, with `{path}`: {'; '.join(unseen)}"
    if without_direct:
        return path, f"`Direct` is not possible: {'; '.join(without_direct)}"
    return path, "the engine writes to the client itself, which takes the least CPU for each token"


def _build_problem(service: str, wanted: str, fallback: str, obstacles: list[str]) -> Problem:
    return problem_at(
        ("services", service, "dataPath"),
        f"service `{service}` cannot use the data path `{wanted}`: {'; '.join(obstacles)}",
        Fix(value=fallback),
    )


def _list_haproxy_obstacles(models: Sequence[ModelPlan], fleet: Fleet) -> Iterator[str]:
    cluster = fleet.clusters[models[0].cluster]
    if cluster.serve_tls:
        yield f"cluster `{models[0].cluster}` has `serveTls`, and Ray's HAProxy listens without TLS"
    ray = _get_ray(models, fleet)
    if _read_version(ray) < (2, 60):
        yield f"its image has Ray {ray}, and the data path needs 2.60.0"


def _list_direct_obstacles(models: Sequence[ModelPlan], fleet: Fleet) -> Iterator[str]:
    if all(get_task(model.task).server == "application" for model in models):
        yield "its applications have no vLLM"
    if any(_routes_by_prefix(model) for model in models) and not _includes_rayhelm(models, fleet):
        yield "its image lacks rayhelm, and Ray's own router finds no prefix there (`includesRayhelm`)"
    elif any(_routes_by_prefix(model) for model in models) and not _have_routers(models, fleet):
        yield f"its image has Ray {_get_ray(models, fleet)}, and rayhelm's router by prefix runs with {versions().ray}"
    if named := [model.model for model in models if model.aliases]:
        yield f"{', '.join(named)} has `aliases`, which only Ray's ingress replaces by the name of the model"


def _list_unseen(path: DataPath, models: Sequence[ModelPlan], fleet: Fleet) -> Iterator[str]:
    """Yield settings with which no test has run this data path, or with which it does less than `Python`."""
    is_ours = path == "Direct" and _have_routers(models, fleet)
    if (ray := _get_ray(models, fleet)) != versions().ray:
        yield f"Ray {ray}"
    if any(model.min_replicas == 0 for model in models) and not is_ours:
        yield "scale to zero"
    if path == "HAProxy" and any(_routes_by_prefix(model) and model.max_replicas > 1 for model in models):
        yield "the prefix cache of several replicas"
    if path == "Direct" and any(model.max_replicas > 1 for model in models) and not is_ours:
        yield "several replicas, of which Ray takes one without a look at their load (`includesRayhelm`, Ray 2.60)"
    if any(model.prefill_decode for model in models):
        yield "separate replicas for prompts and answers"
    if any(model.data_parallel_size > 1 for model in models):
        yield "data parallel ranks"
    if any(model.nodes_per_replica > 1 for model in models):
        yield "replicas on several nodes"


def _routes_by_prefix(model: ModelPlan) -> bool:
    return model.routing == "prefix-affinity"


def _get_ray(models: Sequence[ModelPlan], fleet: Fleet) -> str:
    image = fleet.clusters[models[0].cluster].image
    return (image.ray if image else None) or versions().ray


def _have_routers(models: Sequence[ModelPlan], fleet: Fleet) -> bool:
    """Whether rayhelm's routers can run: they use private names of one minor version of Ray, as the chart knows too."""
    is_known = _read_version(_get_ray(models, fleet)) == _read_version(versions().ray)
    return is_known and _includes_rayhelm(models, fleet)


def _includes_rayhelm(models: Sequence[ModelPlan], fleet: Fleet) -> bool:
    """Whether all pods can import rayhelm. A pool without an image has the one of its cluster."""
    images = [fleet.clusters[models[0].cluster].image]
    images += [image for model in models if (image := fleet.pools[model.pool].image)]
    return all(image and image.includes_rayhelm for image in images)


def _read_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
