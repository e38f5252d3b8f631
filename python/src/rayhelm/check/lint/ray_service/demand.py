"""GPUs that the replicas of a serveConfigV2 need: bundles of a placement group, and the number of replicas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rayhelm.check.lint.ray_service.applications import list_models
from rayhelm.check.lint.ray_service.source import RayService, as_list, as_map
from rayhelm.deploy.serve_models import DP_BUILDER, find_llm_builder
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["Demand", "list_demands"]

_MOST = 4096
"""Bundles that are counted: a file with more by mistake is not unfolded."""


@dataclass(frozen=True)
class Demand:
    """GPUs of one deployment."""

    name: str
    path: Path
    bundles: tuple[float, ...]
    """GPUs of each bundle of a replica; Ray schedules a bundle on one node. None needs GPUs: empty."""
    strategy: str
    least: int
    most: int
    """Replicas."""
    tensor: int = 1
    pipeline: int = 1
    actor_gpus: float = 0
    """`num_gpus` of the replica itself, which is part of the first bundle."""
    has_own_bundles: bool = False
    """`placement_group_config` lists the bundles."""
    unknown: str = ""
    """What cannot be known, and why."""

    @property
    def gpus(self) -> float:
        return sum(self.bundles)


def list_demands(service: RayService) -> Iterator[Demand]:
    """Yield the demand of each engine, and of each deployment of other applications that the file gives GPUs."""
    for path, model in list_models(service):
        yield _read_model(service, path, model)
    for path, application in service.list_applications():
        if find_llm_builder(str(application.get("import_path"))):
            continue
        for at, deployment in enumerate(as_list(application.get("deployments"))):
            options = as_map(as_map(deployment).get("ray_actor_options"))
            if gpus := _number(options.get("num_gpus")):
                least, most = _count_replicas(as_map(deployment))
                name = f"{application.get('name', '')}/{as_map(deployment).get('name', '')}"
                here = (*path, "deployments", at)
                yield Demand(name, here, (gpus,), "PACK", least, most, actor_gpus=gpus)


def _read_model(service: RayService, path: Path, model: Mapping[str, Any]) -> Demand:
    name = str(as_map(model.get("model_loading_config")).get("model_id", ""))
    deployment, engine = as_map(model.get("deployment_config")), as_map(model.get("engine_kwargs"))
    tensor, pipeline = _whole(engine.get("tensor_parallel_size")), _whole(engine.get("pipeline_parallel_size"))
    least, most = _count_replicas(deployment)
    kind = as_map(model.get("accelerator_config")).get("kind", "gpu")
    if model.get("llm_engine", "vLLM") != "vLLM" or model.get("server_cls"):
        return Demand(name, path, (), "PACK", least, most, unknown="its engine is not vLLM's")
    if kind != "gpu":
        return Demand(name, path, (), "PACK", least, most, unknown="" if kind == "cpu" else "it runs on TPUs")
    placement = as_map(model.get("placement_group_config"))
    actor = _number(as_map(deployment.get("ray_actor_options")).get("num_gpus"))
    bundles = [_number(as_map(each).get("GPU")) for each in as_list(placement.get("bundles"))]
    each = _number(as_map(placement["bundle_per_worker"]).get("GPU")) if "bundle_per_worker" in placement else 1.0
    has_own = bool(bundles)
    # A group of data parallel ranks starts together.
    application = as_map(service.config["applications"][int(path[3])])
    is_data_parallel = find_llm_builder(str(application.get("import_path"))) == DP_BUILDER
    ranks = _whole(engine.get("data_parallel_size")) if is_data_parallel else 1
    bundles = (bundles or [each] * min(tensor * pipeline, _MOST)) or [0.0]
    bundles[0] += actor
    needed = tuple(gpus for gpus in bundles * min(ranks, _MOST) if gpus)[:_MOST]
    strategy = str(placement.get("strategy", "PACK"))
    return Demand(name, path, needed, strategy, least, most, tensor, pipeline, actor, has_own)


def _count_replicas(deployment: Mapping[str, Any]) -> tuple[int, int]:
    """Return the least and the most replicas."""
    scaling = deployment.get("autoscaling_config")
    number = deployment.get("num_replicas")
    if isinstance(scaling, dict) or number == "auto":
        least = as_map(scaling).get("min_replicas", 1)
        most = as_map(scaling).get("max_replicas", 100 if number == "auto" else 1)
        return (least if isinstance(least, int) else 1), (most if isinstance(most, int) else 1)
    return (number, number) if isinstance(number, int) and not isinstance(number, bool) else (1, 1)


def _whole(value: object) -> int:
    """Return a size of parallelism; 1 for what is none, which is a problem of the engine argument."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1024 else 1


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else 0.0
