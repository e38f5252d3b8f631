"""`rayhelm explain models.slo.ttft`: type, default, bounds and meaning of a field, read from the types."""

import inspect
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from rayhelm.errors import UsageError
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.lazy_record import type_of
from rayhelm.fleet.nearest import did_you_mean, nearest
from rayhelm.fleet.type_names import name_type
from rayhelm.fleet.walk import alternatives, fields

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """One field, or one record with its fields."""

    path: str
    type: str
    description: str
    default: str
    bounds: dict[str, Any]
    fields: dict[str, str]
    """Keys below it, with the first line of what each is."""


def explain(path: str, charts: Mapping[str, type[BaseModel]] | None = None) -> Explanation:
    """Explain a dotted path of the fleet file, or of the values of a chart, whose name is then the first step.

    After a map, one step may be `*` or left out. It may be a name of the user where a field follows. Raises UsageError
    if there is no such field, with the nearest names."""
    steps = path.split(".") if path else []
    if not all(steps):
        raise UsageError(f"`{path}` is not a dotted path; write it like `models.slo.ttft`")
    charts = charts or {}
    if steps and steps[0] in charts:
        return replace(_explain(steps[1:], charts[steps[0]], steps[0]), path=path)
    if steps and steps[0] not in fields(Fleet):
        raise UsageError(_no_such_field([], steps[0], [*fields(Fleet), *charts], "fleet", may_be_name=False))
    return replace(_explain(steps, Fleet, "fleet"), path=path)


def _explain(steps: list[str], root: type[BaseModel], where: str) -> Explanation:
    """Explain a path below `root`: the fleet file, or the values of the chart `where`."""
    here: Any = root
    info: FieldInfo | None = None
    walked: list[str] = []
    may_be_name = False
    for step, below in zip(steps, [*steps[1:], ""], strict=False):
        record = _record(here)
        if record is None and not may_be_name:
            raise UsageError(f"`{_spell(walked, where)}` has no fields below it")
        known = fields(record) if record else {}
        if may_be_name and step in known and below and not _record(type_of(known[step])):
            may_be_name = False  # `pools.gpu.nodes`: a pool that is called like a key
            continue
        if step not in known:
            # A name that ends the path explains what the map alone does, so it is rather an unknown field.
            is_last = bool(record) and not below and step != "*"
            if not may_be_name or is_last or _is_typo(step, known):
                raise UsageError(_no_such_field(walked, step, known, where, may_be_name=may_be_name))
            may_be_name = False
            continue
        info = known[step]
        here = type_of(info)
        walked.append(step)
        may_be_name = _is_map(here)
    record = _record(here)
    return Explanation(
        path="",
        type=name_type(here, info),
        description=_meaning(info) if info else _doc(root),
        default=_default(info),
        bounds=_bounds(info) if info else {},
        fields={key: " ".join(_meaning(field).split()) for key, field in fields(record).items()} if record else {},
    )


def _is_typo(step: str, known: Collection[str]) -> bool:
    """A name of the user is seldom as near to a key as a mistyped key is."""
    return step not in ("*", "<name>") and bool(nearest(step, known, cutoff=0.75))


def _no_such_field(walked: list[str], step: str, known: Collection[str], where: str, *, may_be_name: bool) -> str:
    path = _spell(walked, where)
    record = f"`{path}`" if path else "the fleet file"
    message = f"{record} has no field `{step}`; {did_you_mean(step, known)}".rstrip("; ")
    if not may_be_name:
        return message
    end = "" if message.endswith("?") else "."
    return f"{message}{end} If you chose this name, write `{path}.*`"


def _spell(walked: list[str], where: str) -> str:
    """The path that was found, as the user writes it."""
    return ".".join(walked if where == "fleet" else [where, *walked])


def _with_metadata(annotation: Any, info: FieldInfo | None) -> Any:
    """The type with what pydantic keeps beside it: the unit of a quantity is there."""
    if info is None or not info.metadata or _record(annotation):
        return annotation
    return Annotated[annotation, *info.metadata]


def _record(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for item in alternatives(annotation):
        if isinstance(item, type) and issubclass(item, BaseModel):
            return item
        arguments = getattr(item, "__args__", ())
        if arguments and (found := _record(arguments[1] if _is_map(item) else arguments[0])):
            return found
    return None


def _is_map(annotation: Any) -> bool:
    return any(getattr(item, "__origin__", None) is dict for item in alternatives(annotation))


def _default(info: FieldInfo | None) -> str:
    if info is None or info.default is PydanticUndefined:
        return "required"
    if info.default is None:
        return "left out"
    default = info.default
    if isinstance(default, BaseModel):
        return json.dumps(default.model_dump(by_alias=True, exclude_none=True, mode="json"))
    return json.dumps(default, default=lambda item: item.model_dump(by_alias=True, exclude_none=True, mode="json"))


def _bounds(info: FieldInfo) -> dict[str, Any]:
    if _record(type_of(info)):
        return {}
    schema = TypeAdapter(_with_metadata(type_of(info), info)).json_schema()
    keys = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength", "maxLength", "pattern")
    options = [schema, *schema.get("anyOf", [])]
    return {key: option[key] for option in options for key in keys if key in option}


def _meaning(info: FieldInfo) -> str:
    """Description of the field, else of the record in it."""
    if info.description:
        return info.description
    record = _record(type_of(info))
    return _doc(record) if record else ""


def _doc(record: type[BaseModel]) -> str:
    return inspect.cleandoc(record.__doc__ or "")
