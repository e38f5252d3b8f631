"""From the serveConfigV2 of each service to one for this computer. Pure: nothing but where it listens is changed."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rayhelm.local.state import Served

__all__ = ["digest", "gpus", "listening", "merge", "prefixes", "served"]

LLM_APP = "ray.serve.llm:build_openai_app"


def merge(configs: Mapping[str, Mapping[str, Any]], *, port: int) -> dict[str, Any]:
    """One Serve config with the applications of every service, on loopback. Where two services use one route or one
    application name, the later one gets its service's name in front."""
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
    return listening({**first, "applications": applications}, port)


def listening(config: Mapping[str, Any], port: int) -> dict[str, Any]:
    """The same config on a port of loopback."""
    return {**config, "http_options": {**config.get("http_options", {}), "host": "127.0.0.1", "port": port}}


def digest(config: Mapping[str, Any]) -> str:
    """Tells whether two configs are the same."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def served(config: Mapping[str, Any], tasks: Mapping[str, str]) -> tuple[Served, ...]:
    """The models of a Serve config, and where they answer. The config does not tell an embedder from a reranker, so
    `tasks` does, by model."""
    return tuple(
        Served(
            model=llm["model_loading_config"]["model_id"],
            task=tasks.get(llm["model_loading_config"]["model_id"], "chat"),
            prefix=application["route_prefix"].rstrip("/"),
        )
        for application in config["applications"]
        if application["import_path"] == LLM_APP
        for llm in application["args"]["llm_configs"]
    )


def prefixes(config: Mapping[str, Any], tasks: Mapping[str, str]) -> dict[str, str]:
    """Path in front of each model's own ones, those of applications beside Serve LLM included."""
    own = {
        str(application["args"]["model"]): application["route_prefix"].rstrip("/")
        for application in config["applications"]
        if application["import_path"] != LLM_APP and application.get("args", {}).get("model") in tasks
    }
    return {model.model: model.prefix for model in served(config, tasks)} | own


def gpus(config: Mapping[str, Any]) -> float:
    """Cards that the replicas which always run book together."""
    llms = [llm for application in config["applications"] for llm in application["args"].get("llm_configs", [])]
    own = [item for application in config["applications"] for item in application.get("deployments", [])]
    booked = [item["ray_actor_options"].get("num_gpus", 0) * _replicas(item) for item in own]
    return sum([_per_replica(llm) * _replicas(llm["deployment_config"]) for llm in llms] + booked)


def _per_replica(llm: Mapping[str, Any]) -> float:
    engine, placement = llm["engine_kwargs"], llm["placement_group_config"]
    workers = engine["tensor_parallel_size"] * engine["pipeline_parallel_size"]
    return float(placement["bundle_per_worker"].get("GPU", 0) * workers)


def _replicas(deployment: Mapping[str, Any]) -> int:
    return int(deployment["autoscaling_config"]["min_replicas"])
