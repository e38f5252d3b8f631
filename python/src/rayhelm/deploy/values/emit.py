"""Values as YAML: what differs from the chart's defaults, in the order of the types."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["dump_yaml", "select_changed"]


def select_changed(values: Closed, usual: Closed | None = None) -> dict[str, Any]:
    """Return what differs from the defaults as plain data with YAML keys. `usual` is the chart's default if it differs
    from the type's default: a peer is empty, but the chart's Prometheus peer is not."""
    plain = values.model_dump(by_alias=True, mode="json")
    found: dict[str, Any] = {}
    extra = values.model_extra or {}
    own = (key for key in plain if key not in extra)
    for (name, field), key in zip(type(values).model_fields.items(), own, strict=True):
        value, default = getattr(values, name), field.get_default(call_default_factory=True)
        there = getattr(usual, name) if usual else default
        if value != default or value != there:
            found[key] = _find_difference(value, there, plain[key])
    return found | {key: plain[key] for key in extra}


def _find_difference(value: object, there: object, plain: Any) -> Any:
    if isinstance(value, Closed):
        return select_changed(value, there if isinstance(there, type(value)) else None)
    if isinstance(value, Mapping):
        default = there if isinstance(there, Mapping) else {}
        # Helm merges maps: a null removes a key of the default that these values lack.
        return {str(key): None for key in default if key not in value} | {
            name: _find_difference(value[key], default.get(key), plain[name])
            for key, name in zip(value, plain, strict=True)
        }
    if isinstance(value, list | tuple):
        return [_find_difference(each, None, entry) for each, entry in zip(value, plain, strict=True)]
    return plain


def dump_yaml(values: Closed, header: str) -> str:
    """Return YAML with a comment at the top."""
    lines = "".join(f"# {line}\n" for line in header.splitlines())
    return lines + yaml.dump(select_changed(values), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """YAML dumper that indents lists below their key, writes whole numbers without a fraction and texts of several
    lines as blocks, and quotes strings that Helm would read as another type."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)


def _format_number(dumper: _Dumper, value: float) -> yaml.Node:
    return dumper.represent_int(int(value)) if value.is_integer() else dumper.represent_float(value)


def _format_text(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(float, _format_number)
_Dumper.add_representer(str, _format_text)

# Helm's parser and Python's differ for these: a model may have the name `n`, a tag may be `1e3`.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^[-+]?0o[0-7]+$"), list("-+0"))
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]*\.?[0-9]*[eE][-+]?[0-9]+$"), list("-+.0123456789")
)
