"""Validate a serveConfigV2 with Ray Serve, Ray Serve LLM and vLLM themselves, before it is applied.

Only these programs know all of their rules. Importing Ray and vLLM takes seconds, so the imports are in the functions.
"""

import importlib
import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NoReturn, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from rayhelm.deploy.advice import how_to_get_ray
from rayhelm.deploy.serve_models import DP_BUILDER, LLM_BUILDER, PD_BUILDER
from rayhelm.errors import MissingError, Problem

__all__ = ["can_check", "check_serve_config"]


def can_check() -> bool:
    """Return whether Ray and vLLM are installed here."""
    return find_spec("ray") is not None and find_spec("vllm") is not None


def check_serve_config(text: str) -> list[Problem]:
    """Return the problems of a serveConfigV2 with their paths; empty if Ray and vLLM accept it."""
    if not can_check():
        raise MissingError("Ray and vLLM are not installed; they are needed to check a serveConfigV2", how_to_get_ray())
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # no warnings about the GPUs of this computer
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        return [Problem(f"this is not YAML: {error}")]
    return [*_check_schema(config)] or [*_check_applications(config)]


def _check_schema(config: Any) -> Iterator[Problem]:
    from ray.serve.schema import ServeDeploySchema

    try:
        ServeDeploySchema.model_validate(config)
    except ValidationError as error:
        yield from _list_problems(error, "")
        return
    yield from _list_ignored(config, ServeDeploySchema, "")


def _list_ignored(node: Any, model: Any, path: str) -> Iterator[Problem]:
    """List keys that Serve's schema ignores."""
    for key, value in node.items():
        where = f"{path}.{key}".lstrip(".")
        if key not in model.model_fields:
            yield Problem("Ray Serve has no such key and would ignore it", path=where)
            continue
        below = _find_model(model.model_fields[key].annotation)
        for number, item in enumerate(value if isinstance(value, list) else [value]):
            if below and isinstance(item, dict):
                yield from _list_ignored(item, below, f"{where}.{number}" if isinstance(value, list) else where)


def _find_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is dict:
        return None
    return next((found for part in get_args(annotation) if (found := _find_model(part))), None)


def _check_applications(config: dict[str, Any]) -> Iterator[Problem]:
    for number, app in enumerate(config.get("applications", [])):
        path = f"applications.{number}"
        yield from _check_import_path(app["import_path"], f"{path}.import_path")
        if app["import_path"] == LLM_BUILDER:
            yield from _check_llm_configs(app.get("args") or {}, f"{path}.args")
        elif app["import_path"] == DP_BUILDER:
            yield from _check_ranks(app.get("args") or {}, f"{path}.args")
        elif app["import_path"] == PD_BUILDER:
            yield from _check_roles(app.get("args") or {}, f"{path}.args")


def _check_import_path(import_path: str, path: str) -> Iterator[Problem]:
    module, _, attribute = import_path.replace(":", ".").rpartition(".")
    try:
        getattr(importlib.import_module(module), attribute)
    except Exception as error:
        yield Problem(f"{import_path} cannot be imported: {type(error).__name__}: {error}", path=path)


def _check_llm_configs(arguments: dict[str, Any], path: str) -> Iterator[Problem]:
    from ray.serve.llm import LLMConfig, LLMServingArgs

    try:
        LLMServingArgs.model_validate(arguments)
    except ValidationError as error:
        found = [*_check_each_model(LLMConfig, arguments, path)]
        yield from found or _list_problems(error, path)
        return
    for number, config in enumerate(arguments["llm_configs"]):
        yield from _check_engine(LLMConfig.model_validate(config), f"{path}.llm_configs.{number}")


def _check_ranks(arguments: dict[str, Any], path: str) -> Iterator[Problem]:
    """Check one model with data parallel ranks, and the options of the group that Ray derives from it."""
    # Ray exports the builder, and not the model of its arguments.
    from ray.llm._internal.serve.serving_patterns.data_parallel.builder import DPOpenAiServingArgs
    from ray.llm._internal.serve.serving_patterns.data_parallel.dp_server import DPServer
    from ray.serve.llm import LLMConfig

    if ignored := sorted(arguments.keys() - DPOpenAiServingArgs.model_fields):
        yield Problem(f"build_dp_openai_app has no argument {', '.join(ignored)}", path=path)
        return
    try:
        DPOpenAiServingArgs.model_validate(arguments)
        config = LLMConfig.model_validate(arguments["llm_config"])
        options = DPServer.get_deployment_options(config)
    except ValidationError as error:
        yield from _list_problems(error, path)
        return
    except (ValueError, TypeError) as error:
        yield Problem(str(error), path=f"{path}.llm_config")
        return
    if "gang_scheduling_config" not in options:
        yield Problem("data_parallel_size is 1, and DPServer needs a group of ranks", path=f"{path}.llm_config")
        return
    yield from _check_engine(config, f"{path}.llm_config")


def _check_roles(arguments: dict[str, Any], path: str) -> Iterator[Problem]:
    """Check a model with replicas of its own for prompts: both configs, and the connector between them."""
    # Ray exports the builder, and not the model of its arguments.
    from ray.llm._internal.serve.engines.vllm.kv_transfer.factory import KVConnectorBackendFactory
    from ray.llm._internal.serve.serving_patterns.prefill_decode.builder import PDServingArgs
    from ray.serve.llm import LLMConfig

    if ignored := sorted(arguments.keys() - PDServingArgs.model_fields):
        yield Problem(f"build_pd_openai_app has no argument {', '.join(ignored)}", path=path)
        return
    found: list[Problem] = []
    for key in ("prefill_config", "decode_config"):
        try:
            LLMConfig.model_validate(arguments.get(key))
        except ValidationError as error:
            found += _list_problems(error, f"{path}.{key}")
    if found:
        yield from found
        return
    try:
        roles = PDServingArgs.model_validate(arguments)
    except ValidationError as error:
        yield from _list_problems(error, path)
        return
    for key, config in (("prefill_config", roles.prefill_config), ("decode_config", roles.decode_config)):
        yield from _check_engine(config, f"{path}.{key}")
        connector = (config.engine_kwargs.get("kv_transfer_config") or {}).get("kv_connector")
        if not KVConnectorBackendFactory.is_registered(str(connector)):
            message = f"Ray Serve LLM has no connector {connector} for replicas of two kinds"
            yield Problem(message, path=f"{path}.{key}.engine_kwargs.kv_transfer_config")


def _check_each_model(model: Any, arguments: dict[str, Any], path: str) -> Iterator[Problem]:
    """List the same problems with the index of the model, which LLMServingArgs does not report."""
    for number, config in enumerate(arguments.get("llm_configs") or []):
        try:
            model.model_validate(config)
        except ValidationError as error:
            yield from _list_problems(error, f"{path}.llm_configs.{number}")


def _check_engine(config: Any, path: str) -> Iterator[Problem]:
    try:
        engine = config.get_engine_config()
        kwargs = engine.get_initialization_kwargs() | engine.frontend_kwargs
    except (ValueError, TypeError) as error:
        yield Problem(str(error), path=f"{path}.engine_kwargs")
        return
    bundles = len(engine.placement_bundles)
    if bundles != engine.num_devices:
        message = f"{bundles} bundles for tensor x pipeline parallel = {engine.num_devices} ranks"
        yield Problem(message, path=f"{path}.placement_group_config")
    if message := _ask_parser(kwargs):
        yield Problem(message, path=f"{path}.engine_kwargs")


def _ask_parser(kwargs: dict[str, Any]) -> str:
    """Return the error of vLLM's command line parser; Ray does not check the types of the arguments."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    class Parser(FlexibleArgumentParser):  # type: ignore[misc]
        def error(self, message: str) -> NoReturn:
            raise ValueError(message)

    try:
        AsyncEngineArgs.from_cli_args(make_arg_parser(Parser()).parse_args(_build_arguments(kwargs)))
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


def _build_arguments(kwargs: dict[str, Any]) -> list[str]:
    arguments: list[str] = []
    for key, value in kwargs.items():
        option = key.replace("_", "-")
        if isinstance(value, bool):
            arguments.append(f"--{option}" if value else f"--no-{option}")
        elif key == "lora_modules":  # a list of words, each JSON
            arguments += [f"--{option}", *map(json.dumps, value)]
        elif isinstance(value, list) and not any(isinstance(item, dict) for item in value):
            arguments += [f"--{option}", *map(str, value)]
        elif value is not None:
            arguments.append(f"--{option}={value if isinstance(value, str) else json.dumps(value)}")
    return arguments


def _list_problems(error: ValidationError, path: str) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in (path, *item["loc"]) if part != "")
        yield Problem(item["msg"].removeprefix("Value error, "), path=where)
