"""Merge the serveConfigV2 of each service into one for this computer. Pure; only the listen address changes."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rayhelm.deploy.serve_models import list_engine_configs, list_llm_configs
from rayhelm.run.local.state import EndpointModel

__all__ = ["count_gpus", "hash_config", "list_models", "list_prefixes", "merge", "set_listen_address"]


def merge(configs: Mapping[str, Mapping[str, Any]], *, port: int) -> dict[str, Any]:
    """Merge the applications of all services into one Serve config on 127.0.0.1.

    If two services use the same route or application name, the later one is prefixed with the name of its service.
    """
    applications: list[dict[str, Any]] = []
    names: set[str] = set()
    routes: set[str] = set()
    for service, config in configs.items():
        for application in config["applications"]:
            name, route = application["name"], application["route_prefix"]
            if name in names:
                name = f"{service}-{name}"
            if route in routes:
                route = f"/{service}{route.rstrip('/')}"
            names.add(name)
            routes.add(route)
            applications.append({**application, "name": name, "route_prefix": route})
    first = next(iter(configs.values()))
    return set_listen_address({**first, "applications": applications}, port)


def set_listen_address(config: Mapping[str, Any], port: int) -> dict[str, Any]:
    """Return the config with `port` of 127.0.0.1 as its HTTP address, without TLS, whose Secret is elsewhere."""
    options = {key: value for key, value in config.get("http_options", {}).items() if not key.startswith("ssl_")}
    return {**config, "http_options": {**options, "host": "127.0.0.1", "port": port}}


def hash_config(config: Mapping[str, Any]) -> str:
    """Return a digest that is equal for equal configs."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def list_models(config: Mapping[str, Any], tasks: Mapping[str, str]) -> tuple[EndpointModel, ...]:
    """List the models of a Serve config with their paths.

    `tasks` is the task of each model: the config does not say whether a model embeds or reranks.
    """
    return tuple(
        EndpointModel(model=name, task=tasks.get(name, "chat"), prefix=application["route_prefix"].rstrip("/"))
        for application in config["applications"]
        for name in _list_names(application, tasks)
    )


def _list_names(application: Mapping[str, Any], tasks: Mapping[str, str]) -> list[str]:
    """List the models of an application of Ray Serve LLM, or the one that another application names in `args`."""
    if llms := list_llm_configs(application):
        return [llm["model_loading_config"]["model_id"] for llm in llms]
    own = application.get("args", {}).get("model")
    return [str(own)] if own in tasks else []


def list_prefixes(config: Mapping[str, Any], tasks: Mapping[str, str]) -> dict[str, str]:
    """Return the path prefix of each model, adapters included."""
    adapters = {
        str(adapter["name"]): application["route_prefix"].rstrip("/")
        for application in config["applications"]
        for llm in list_llm_configs(application)
        for adapter in llm.get("engine_kwargs", {}).get("lora_modules", ())
    }
    return {model.model: model.prefix for model in list_models(config, tasks)} | adapters


def count_gpus(config: Mapping[str, Any]) -> float:
    """Count the GPUs that the minimum number of replicas request."""
    llms = [llm for application in config["applications"] for llm in list_engine_configs(application)]
    own = [item for application in config["applications"] for item in application.get("deployments", [])]
    requested = [item["ray_actor_options"].get("num_gpus", 0) * _get_min_replicas(item) for item in own]
    return sum([_count_gpus_per_replica(llm) * _get_min_replicas(llm["deployment_config"]) for llm in llms] + requested)


def _count_gpus_per_replica(llm: Mapping[str, Any]) -> float:
    engine, placement = llm["engine_kwargs"], llm["placement_group_config"]
    workers = engine["tensor_parallel_size"] * engine["pipeline_parallel_size"] * engine.get("data_parallel_size", 1)
    return float(placement["bundle_per_worker"].get("GPU", 0) * workers)


def _get_min_replicas(deployment: Mapping[str, Any]) -> int:
    return int(deployment["autoscaling_config"]["min_replicas"])
