"""Applications of a serveConfigV2: the import path, keys of Ray Serve LLM, and engine arguments.

Neither Ray nor vLLM is imported: their keys are those of the versions in `data/versions.yaml`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from rayhelm.check.lint.ray_service.model_rules import check_model_rules, check_ranks, check_roles
from rayhelm.check.lint.ray_service.serve_keys import (
    check_builder_keys,
    check_config_keys,
    check_model_keys,
    list_model_keys,
    place_problem,
)
from rayhelm.check.lint.ray_service.source import CONFIG, RayService, as_list, as_map
from rayhelm.deploy.serve_models import DP_BUILDER, LLM_BUILDER, LLM_BUILDERS, PD_BUILDER, find_llm_builder
from rayhelm.errors import Fix, Problem
from rayhelm.facts.engine_arguments import load_argument_schema, load_removed_arguments
from rayhelm.fleet.argument_types import build_argument_record
from rayhelm.fleet.document import Document
from rayhelm.fleet.nearest import did_you_mean, nearest
from rayhelm.fleet.translate import translate_errors
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["BUILDER_KEYS", "check_applications", "list_models"]

_MODULE = "ray.serve.llm"
_ALIKE = 0.75
BUILDER_KEYS = {
    LLM_BUILDER: ("llm_configs",),
    DP_BUILDER: ("llm_config",),
    PD_BUILDER: ("prefill_config", "decode_config"),
}
"""Arguments of each builder that have models, and that it needs."""
_SET_BY_RAY = dict.fromkeys(("model", "served_model_name"), "Ray Serve LLM refuses it: `model_loading_config` sets it")
_TASK_RUNNERS = {
    "generate": "generate",
    "draft": "draft",
    **dict.fromkeys(("embed", "embedding", "classify", "score", "reward", "encode"), "pooling"),
}
"""`runner` for each value of the removed `task`."""


def check_applications(service: RayService) -> Iterator[Problem]:
    """Yield what Ray Serve, Ray Serve LLM and vLLM refuse when they build the applications."""
    if service.config and "applications" not in service.config:
        fix = Fix("applications", [{"name": "llms", "import_path": LLM_BUILDER, "route_prefix": "/"}])
        yield service.document.problem(("spec", "serveConfigV2"), "has no `applications`", fix, "ray-config")
    for path in _list_odd_items(service.config, (*CONFIG, "applications"), "applications"):
        yield service.document.problem(path, "is not a map: an application", Fix.removal(), "ray-config")
    yield from check_config_keys(service)
    for path, application in service.list_applications():
        yield from _check_import_path(service, path, application)
        if builder := find_llm_builder(str(application.get("import_path"))):
            yield from _check_arguments(service, path, application, builder)
    for path, model in list_models(service):
        yield from _check_model(service, path, model)


def _list_odd_items(data: Mapping[str, Any], above: Path, key: str, *kinds: type) -> Iterator[Path]:
    """Yield the paths of items in a list of maps that are neither maps nor of other allowed kinds."""
    for at, item in enumerate(as_list(data.get(key))):
        if not isinstance(item, (dict, *kinds)):
            yield (*above, at)


def list_models(service: RayService) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the LLMConfig of each engine with its path."""
    for path, application in service.list_applications():
        arguments = as_map(application.get("args"))
        for key in BUILDER_KEYS.get(find_llm_builder(str(application.get("import_path"))), ()):
            value = arguments.get(key)
            if isinstance(value, dict):
                yield (*path, "args", key), value
            for at, model in enumerate(as_list(value)):
                if isinstance(model, dict):  # Ray Serve LLM also takes names of files
                    yield (*path, "args", key, at), model


def _check_import_path(service: RayService, path: Path, application: Mapping[str, Any]) -> Iterator[Problem]:
    written = application.get("import_path")
    here = (*path, "import_path")
    problem_at = service.document.problem
    if not isinstance(written, str) or not written:
        yield problem_at(path, "has no `import_path`", Fix("import_path", LLM_BUILDER), "ray-import-path")
        return
    module, _, name = written.replace(":", ".").rpartition(".")
    if written.count(":") > 1 or not module or not name:
        message = f"`{written}` is no import path: `module:name`, or `module.name`"
        yield problem_at(here, message, Fix("", LLM_BUILDER), "ray-import-path")
    elif (module == _MODULE or module.startswith(f"{_MODULE}.")) and not find_llm_builder(written):
        near = nearest(written, LLM_BUILDERS, most=1, cutoff=0.0)[0]
        names = ", ".join(each.rpartition(":")[2] for each in LLM_BUILDERS)
        message = f"Ray Serve LLM builds no application with `{written}`; it has {names}"
        yield problem_at(here, message, Fix("", near), "ray-import-path")


def _check_arguments(
    service: RayService, path: Path, application: Mapping[str, Any], builder: str
) -> Iterator[Problem]:
    arguments = as_map(application.get("args"))
    for key in BUILDER_KEYS[builder]:
        if not arguments.get(key):
            model = {"model_loading_config": {"model_id": "chat", "model_source": "Qwen/Qwen2.5-0.5B-Instruct"}}
            fix = Fix(f"args.{key}", [model] if key == "llm_configs" else model)
            message = f"{builder.rpartition(':')[2]} needs `{key}` in `args`"
            yield service.document.problem(path, message, fix, "ray-llm-config")
        for odd in _list_odd_items(arguments, (*path, "args", key), key, str):
            message = "is neither a map, an LLMConfig, nor the name of a file with one"
            yield service.document.problem(odd, message, Fix.removal(), "ray-llm-config")
    if all(arguments.get(key) for key in BUILDER_KEYS[builder]):
        yield from check_builder_keys(service, (*path, "args"), arguments, builder)
    if builder == DP_BUILDER:
        yield from check_ranks(service, (*path, "args"), arguments)
    elif builder == PD_BUILDER:
        yield from check_roles(service, (*path, "args"), arguments)


def _check_model(service: RayService, path: Path, model: Mapping[str, Any]) -> Iterator[Problem]:
    problem_at = service.document.problem
    for key in (each for each in model if each not in list_model_keys()):
        near = nearest(key, list_model_keys(), most=1, cutoff=_ALIKE)
        argument = key in load_argument_schema()["properties"]
        fix = Fix(f"../{near[0]}", model[key], replaces="") if near else Fix.removal()
        if argument and not near:
            fix = Fix(f"../engine_kwargs.{key}", model[key], replaces="")
        hint = "; it is an engine argument" if argument else f"; {did_you_mean(key, near)}" if near else ""
        yield problem_at((*path, key), f"LLMConfig of Ray Serve LLM has no key `{key}`{hint}", fix, "ray-llm-config")
    if not as_map(model.get("model_loading_config")).get("model_id"):
        fix = Fix("model_loading_config", {**as_map(model.get("model_loading_config")), "model_id": "chat"})
        yield problem_at(path, "a model needs `model_loading_config.model_id`", fix, "ray-llm-config")
    yield from check_model_keys(service, path, model)
    yield from check_model_rules(service, path, model)
    if model.get("llm_engine", "vLLM") == "vLLM" and not model.get("server_cls"):
        kind = as_map(model.get("accelerator_config")).get("kind")
        arguments = as_map(model.get("engine_kwargs"))
        yield from _check_engine(service, (*path, "engine_kwargs"), arguments, is_on_cpu=kind == "cpu")


def _check_engine(service: RayService, path: Path, written: Mapping[str, Any], *, is_on_cpu: bool) -> Iterator[Problem]:
    for key, why in _SET_BY_RAY.items():
        if key in written:
            yield service.document.problem((*path, key), why, Fix.removal(), "vllm-argument")
    executor = written.get("distributed_executor_backend", "ray")
    if executor != "ray" and not is_on_cpu:
        message = f"is `{executor}`: Ray Serve LLM refuses another executor than `ray` on GPUs"
        place = (*path, "distributed_executor_backend")
        yield service.document.problem(place, message, Fix("", "ray"), "vllm-argument")
    data = {key: value for key, value in written.items() if key not in _SET_BY_RAY and value is not None}
    lines = {each[len(path) :]: line for each, line in service.document.lines.items() if each[: len(path)] == path}
    document, record = Document(service.document.file, data, lines), build_argument_record()
    try:
        record.model_validate(data)
    except ValidationError as error:
        for problem in translate_errors(error, document, record):
            yield _explain_removed(problem, path, service.document, data) or place_problem(
                problem, path, "vllm-argument"
            )


def _explain_removed(problem: Problem, path: Path, document: Document, data: Mapping[str, Any]) -> Problem | None:
    """Return the problem of an argument that earlier versions had; None for another one."""
    removed = load_removed_arguments().get(problem.path)
    if not removed:
        return None
    value = data[problem.path]
    value = _TASK_RUNNERS.get(str(value), "auto") if problem.path == "task" else value
    fix = Fix(f"../{removed.use}", value, replaces="") if removed.use else Fix.removal()
    message = f"vLLM {load_argument_schema()['version']} has no argument `{problem.path}`: {removed.why}"
    return document.problem((*path, problem.path), message, fix, "vllm-argument")
