"""The models of an application in a serveConfigV2."""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "DP_BUILDER",
    "LLM_BUILDER",
    "LLM_BUILDERS",
    "PD_BUILDER",
    "find_llm_builder",
    "list_engine_configs",
    "list_llm_configs",
]

LLM_BUILDER = "ray.serve.llm:build_openai_app"
DP_BUILDER = "ray.serve.llm:build_dp_openai_app"
"""For one model with data parallel ranks."""
PD_BUILDER = "ray.serve.llm:build_pd_openai_app"
"""For one model with replicas that compute prompts, and others that compute answers."""
LLM_BUILDERS = (LLM_BUILDER, DP_BUILDER, PD_BUILDER)


def find_llm_builder(import_path: str) -> str:
    """Return the builder of Ray Serve LLM that an import path names; empty for another path. Ray reads a dot before the
    name as it reads a colon."""
    return next((each for each in LLM_BUILDERS if each.replace(":", ".") == import_path.replace(":", ".")), "")


def list_llm_configs(application: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the config of each model of an application; empty for one without Ray Serve LLM. A model with separate
    replicas for prompts and answers has two, and this is the one for answers, which serves the requests."""
    arguments = _read_arguments(application)
    for key in ("llm_config", "decode_config"):
        if isinstance(arguments.get(key), dict):
            return [arguments[key]]
    configs = arguments.get("llm_configs")
    # Ray Serve LLM also takes names of files.
    return [each for each in configs if isinstance(each, dict)] if isinstance(configs, list) else []


def list_engine_configs(application: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the config of each deployment with an engine: the same, and the one for prompts."""
    prefill = _read_arguments(application).get("prefill_config")
    return [*([prefill] if isinstance(prefill, dict) else []), *list_llm_configs(application)]


def _read_arguments(application: Mapping[str, Any]) -> dict[str, Any]:
    arguments = application.get("args")
    return arguments if isinstance(arguments, dict) else {}
