"""Rules of Ray Serve LLM 2.60 across several keys of a model, which its types do not say."""

from collections.abc import Iterator, Mapping
from typing import Any

from rayhelm.check.lint.ray_service.source import RayService, as_list, as_map
from rayhelm.deploy.serve_models import DP_BUILDER, PD_BUILDER
from rayhelm.errors import Fix, Problem
from rayhelm.facts.serve_schema import load_serve_schema
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["check_model_rules", "check_ranks", "check_roles"]

_RULE = "ray-llm-config"
_TPU = "TPU-"
"""How the names of TPUs start in Ray's accelerator types."""


def check_model_rules(service: RayService, path: Path, model: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what one model contradicts itself in."""
    yield from _check_scaling(service, path, as_map(as_map(model.get("deployment_config")).get("autoscaling_config")))
    yield from _check_bundles(service, path, model)
    yield from _check_hardware(service, path, model)
    problem_at, engine = service.document.problem, as_map(model.get("engine_kwargs"))
    if model.get("log_engine_metrics", True) and engine.get("disable_log_stats"):
        message = "engine metrics need the statistics that `disable_log_stats` turns off"
        yield problem_at((*path, "engine_kwargs", "disable_log_stats"), message, Fix.removal(), _RULE)
    if "num_router_replicas" in (experimental := as_map(model.get("experimental_configs"))):
        fix = Fix("../num_ingress_replicas", experimental["num_router_replicas"], replaces="")
        here = (*path, "experimental_configs", "num_router_replicas")
        yield problem_at(here, "Ray Serve LLM calls it `num_ingress_replicas`", fix, _RULE)


def _check_scaling(service: RayService, path: Path, scaling: Mapping[str, Any]) -> Iterator[Problem]:
    least, most = scaling.get("min_replicas", 1), scaling.get("max_replicas", 1)
    if not isinstance(least, int) or not isinstance(most, int):
        return
    here = (*path, "deployment_config", "autoscaling_config")
    if least > most:
        message = f"`min_replicas` is {least}, and `max_replicas` is {most}"
        yield service.document.problem(here, message, Fix("max_replicas", least), _RULE)
        return
    first = scaling.get("initial_replicas")
    if isinstance(first, int) and not least <= first <= most:
        message = f"`initial_replicas` is {first}, outside of {least} to {most}"
        yield service.document.problem(
            (*here, "initial_replicas"), message, Fix("", max(least, min(first, most))), _RULE
        )


def _check_bundles(service: RayService, path: Path, model: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield bundles that are not one for each rank."""
    engine = as_map(model.get("engine_kwargs"))
    bundles = as_list(as_map(model.get("placement_group_config")).get("bundles"))
    tensor, pipeline = (engine.get(f"{kind}_parallel_size", 1) for kind in ("tensor", "pipeline"))
    if not bundles or not isinstance(tensor, int) or not isinstance(pipeline, int):
        return
    if len(bundles) != tensor * pipeline:
        message = f"{len(bundles)} bundles for tensor x pipeline parallel = {tensor * pipeline} ranks"
        fix = Fix("", {"bundle_per_worker": as_map(bundles[0]) or {"GPU": 1, "CPU": 1}})
        yield service.document.problem((*path, "placement_group_config"), message, fix, _RULE)


def _check_hardware(service: RayService, path: Path, model: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield an accelerator type that is not of the stated kind of hardware."""
    name, kind = model.get("accelerator_type"), as_map(model.get("accelerator_config")).get("kind")
    if not isinstance(name, str) or kind not in ("cpu", "gpu", "tpu"):
        return
    needed = "tpu" if name.startswith(_TPU) else "gpu"
    if kind != needed:
        message = f"`{name}` is a {needed.upper()}, and `accelerator_config.kind` is `{kind}`"
        yield service.document.problem((*path, "accelerator_type"), message, Fix.removal(), _RULE)


def check_ranks(service: RayService, path: Path, arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a group of fewer than two data parallel ranks."""
    model = arguments.get("llm_config")
    if not isinstance(model, dict):
        return
    size = as_map(model.get("engine_kwargs")).get("data_parallel_size", 1)
    if not isinstance(size, int) or size < 2:
        message = (
            f"`data_parallel_size` is {size}, and {DP_BUILDER.rpartition(':')[2]} starts a group of 2 ranks or more"
        )
        here = (*path, "llm_config", "engine_kwargs")
        yield service.document.problem(here, message, Fix("data_parallel_size", 2), _RULE)


def check_roles(service: RayService, path: Path, arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what replicas for prompts and those for answers do not agree in, and connectors that Ray does not have."""
    roles = {key: arguments[key] for key in ("prefill_config", "decode_config") if isinstance(arguments.get(key), dict)}
    if len(roles) < 2:
        return
    problem_at, builder = service.document.problem, PD_BUILDER.rpartition(":")[2]
    prefill, decode = roles["prefill_config"], roles["decode_config"]
    first, second = (as_map(role.get("model_loading_config")).get("model_id") for role in (prefill, decode))
    if first != second:
        message = f"`model_id` is `{second}`, and `{first}` in `prefill_config`"
        here = (*path, "decode_config", "model_loading_config", "model_id")
        yield problem_at(here, message, Fix("", first), _RULE)
    if bool(prefill.get("lora_config")) != bool(decode.get("lora_config")):
        has, lacks = ("prefill", "decode") if prefill.get("lora_config") else ("decode", "prefill")
        fix = Fix("lora_config", roles[f"{has}_config"]["lora_config"])
        message = f"`lora_config` must be in both configs, and is in `{has}_config` alone"
        yield problem_at((*path, f"{lacks}_config"), message, fix, _RULE)
    for key, role in roles.items():
        transfer = as_map(as_map(role.get("engine_kwargs")).get("kv_transfer_config"))
        here = (*path, key, "engine_kwargs", "kv_transfer_config")
        if not transfer:
            fix = Fix("", {"kv_connector": "NixlConnector", "kv_role": "kv_both"})
            yield problem_at(here, f"{builder} needs a connector that moves the KV cache", fix, _RULE)
        elif (name := str(transfer.get("kv_connector"))) not in (known := load_serve_schema()["connectors"]):
            message = f"Ray Serve LLM has no connector {name} for replicas of two kinds: {', '.join(known)}"
            yield problem_at((*here, "kv_connector"), message, Fix("", "NixlConnector"), _RULE)
