"""The models of an application in a serveConfigV2."""

from collections.abc import Mapping
from typing import Any

__all__ = ["DP_BUILDER", "LLM_BUILDER", "list_llm_configs"]

LLM_BUILDER = "ray.serve.llm:build_openai_app"
DP_BUILDER = "ray.serve.llm:build_dp_openai_app"
"""For one model with data parallel ranks."""


def list_llm_configs(application: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the configs of the models of an application; empty for one without Ray Serve LLM."""
    arguments = application.get("args") or {}
    found: list[dict[str, Any]] = [*(arguments.get("llm_configs") or [])]
    return [arguments["llm_config"]] if isinstance(arguments.get("llm_config"), dict) else found
