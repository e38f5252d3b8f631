"""Values as YAML that people read: what differs from the chart's defaults, in the order of the types."""

from typing import Any

import yaml

from rayhelm.closed import Closed

__all__ = ["as_yaml", "changed"]


def changed(values: Closed) -> dict[str, Any]:
    """Plain data of what differs from the defaults, in the spelling of YAML."""
    return values.model_dump(by_alias=True, mode="json", exclude_defaults=True)


def as_yaml(values: Closed, header: str) -> str:
    """YAML with a comment in front."""
    lines = "".join(f"# {line}\n" for line in header.splitlines())
    return lines + yaml.dump(changed(values), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, as Helm charts do, and writes whole numbers without a fraction."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)


def _number(dumper: _Dumper, value: float) -> yaml.Node:
    return dumper.represent_int(int(value)) if value.is_integer() else dumper.represent_float(value)


_Dumper.add_representer(float, _number)
