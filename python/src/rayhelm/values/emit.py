"""Values as YAML that people read: what differs from the chart's defaults, in the order of the types."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from rayhelm.closed import Closed

__all__ = ["dump_yaml", "select_changed"]


def select_changed(values: Closed, usual: Closed | None = None) -> dict[str, Any]:
    """Plain data of what differs from the defaults, in the spelling of YAML. `usual` is what stands in the chart where
    that is not what the values' own type says: any peer is nobody, but Prometheus is somebody."""
    plain = values.model_dump(by_alias=True, mode="json")
    found: dict[str, Any] = {}
    for (name, field), key in zip(type(values).model_fields.items(), plain, strict=True):
        value, default = getattr(values, name), field.get_default(call_default_factory=True)
        there = getattr(usual, name) if usual else default
        if value != default or value != there:
            found[key] = _difference(value, there, plain[key])
    return found


def _difference(value: object, there: object, plain: Any) -> Any:
    if isinstance(value, Closed):
        return select_changed(value, there if isinstance(there, type(value)) else None)
    if isinstance(value, Mapping):
        default = there if isinstance(there, Mapping) else {}
        # Helm merges maps: what the chart has and these values have not is taken out by a null.
        return {str(key): None for key in default if key not in value} | {
            name: _difference(value[key], default.get(key), plain[name]) for key, name in zip(value, plain, strict=True)
        }
    if isinstance(value, list | tuple):
        return [_difference(each, None, entry) for each, entry in zip(value, plain, strict=True)]
    return plain


def dump_yaml(values: Closed, header: str) -> str:
    """YAML with a comment in front."""
    lines = "".join(f"# {line}\n" for line in header.splitlines())
    return lines + yaml.dump(select_changed(values), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, as Helm charts do, writes whole numbers without a fraction, and quotes what Helm
    would read as something else than text."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)


def _number(dumper: _Dumper, value: float) -> yaml.Node:
    return dumper.represent_int(int(value)) if value.is_integer() else dumper.represent_float(value)


_Dumper.add_representer(float, _number)

# Helm's parser and Python's differ in these: a model may be called `n`, and a tag may be `1e3`.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^[-+]?0o[0-7]+$"), list("-+0"))
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]*\.?[0-9]*[eE][-+]?[0-9]+$"), list("-+.0123456789")
)
