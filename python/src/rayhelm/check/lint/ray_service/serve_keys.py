"""Keys and values that Ray Serve and Ray Serve LLM refuse or ignore, by the schemas of the pinned Ray."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import ConfigDict, ValidationError

from rayhelm.check.lint.ray_service.source import CONFIG, RayService
from rayhelm.errors import Fix, Problem
from rayhelm.facts.serve_schema import load_serve_schema
from rayhelm.fleet.document import Document
from rayhelm.fleet.schema_records import SchemaRecord, SchemaRecords
from rayhelm.fleet.translate import translate_errors
from rayhelm.fleet.yaml_nodes import Path, dotted_whole

__all__ = ["IGNORED", "check_builder_keys", "check_config_keys", "check_model_keys", "list_model_keys", "place_problem"]


IGNORED = "ray-ignored-key"
"""Rule of a key that has no effect."""


class _RayKeys(SchemaRecord):
    # Ray reads "2" as 2, as pydantic does.
    model_config = ConfigDict(strict=False)
    PROGRAM = "Ray Serve"


@cache
def _find_records() -> SchemaRecords:
    _RayKeys.UNKNOWN = f"Ray {load_serve_schema()['version']} has no key"
    return SchemaRecords(load_serve_schema()["$defs"], _RayKeys, {})


def list_model_keys() -> list[str]:
    """Return the keys of LLMConfig."""
    return list(load_serve_schema()["$defs"]["LLMConfig"]["properties"])


def check_config_keys(service: RayService) -> Iterator[Problem]:
    """Yield keys and values of Serve itself: of applications without their arguments, deployments and HTTP options.
    Keys that Serve ignores are of the rule `IGNORED`."""
    for problem in _check("ServeDeploySchema", service.config, CONFIG, service.document, "ray-config"):
        is_ignored = problem.message.startswith(_RayKeys.UNKNOWN)
        yield replace(problem, rule=IGNORED) if is_ignored else problem


def check_builder_keys(
    service: RayService, path: Path, arguments: Mapping[str, Any], builder: str
) -> Iterator[Problem]:
    """Yield keys of the arguments of an application of Ray Serve LLM; its models are checked by themselves."""
    name = load_serve_schema()["builders"][builder]["$ref"].rpartition("/")[2]
    models = load_serve_schema()["$defs"][name].get("required", ())
    # A model stands for itself: its problems are not those of the application.
    stated = {
        key: ([] if isinstance(value, list) else "") if key in models else value for key, value in arguments.items()
    }
    yield from _check(name, stated, path, service.document, "ray-llm-config")


def check_model_keys(service: RayService, path: Path, model: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield values of an LLMConfig. Its unknown keys and engine arguments are checked elsewhere."""
    known = {key: value for key, value in model.items() if key in list_model_keys() and key != "engine_kwargs"}
    loading = known.get("model_loading_config", {})
    if isinstance(loading, dict):  # a missing id is a problem of the model
        known["model_loading_config"] = loading | {"model_id": loading.get("model_id") or "-"}
    yield from _check("LLMConfig", known, path, service.document, "ray-llm-config")


def _check(name: str, data: Mapping[str, Any], path: Path, document: Document, rule: str) -> Iterator[Problem]:
    lines = {each[len(path) :]: line for each, line in document.lines.items() if each[: len(path)] == path}
    part, record = Document(document.file, data, lines), _find_records().find(name)
    try:
        record.model_validate(data)
    except ValidationError as error:
        for problem in translate_errors(error, part, record):
            yield place_problem(problem, path, rule)


def place_problem(problem: Problem, path: Path, rule: str) -> Problem:
    """Return a problem of a part of a file as one of the whole file."""
    above = dotted_whole(path)
    first, *others = (_place_fix(fix, above) for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix))
    here = f"{above}.{problem.path}" if problem.path else above
    return replace(problem, path=here, fix=first, alternatives=tuple(others), rule=rule)


def _place_fix(fix: Fix, above: str) -> Fix:
    if not fix.path:
        return fix
    # The advice of a removal is about the keys of a fleet file.
    why = "" if fix.is_removal else fix.why
    return replace(fix, path=f"{above}.{fix.path}", replaces=fix.replaces and f"{above}.{fix.replaces}", why=why)
