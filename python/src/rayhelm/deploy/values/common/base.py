"""Base class and types of all values models: camelCase keys, Kubernetes names and quantities."""

from functools import cache
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from rayhelm.facts.closed import Closed

__all__ = ["Cidr", "Env", "Name", "Port", "Quantity", "Text", "Values", "WebUrl"]

Name = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
"""A DNS-1035 label, which is valid for KubeRay objects, Services and port names."""

TEXT_OR_NUMBER: JsonDict = {"type": ["string", "number"]}

Quantity = Annotated[
    str,
    Field(
        pattern=r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$",
        coerce_numbers_to_str=True,
        json_schema_extra=TEXT_OR_NUMBER,
    ),
]
"""A Kubernetes quantity with its unit: `500m`, `16`, `64Gi`."""

Text = Annotated[str, Field(coerce_numbers_to_str=True, json_schema_extra=TEXT_OR_NUMBER)]
"""A text that YAML may parse as a number: environment variables, label values."""

Port = Annotated[int, Field(ge=1, le=65535)]

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"({_OCTET}\.){{3}}{_OCTET}/(3[0-2]|[12]?[0-9])"
_IPV6 = "[0-9a-fA-F:]*:[0-9a-fA-F:.]*/(12[0-8]|1[01][0-9]|[1-9]?[0-9])"
Cidr = Annotated[str, Field(pattern=f"^({_IPV4}|{_IPV6})$")]
"""A block of addresses: `10.0.0.0/8`, `fd00::/8`. Only the API server checks every form of IPv6."""

WebUrl = Annotated[str, Field(pattern=r"^(https?://[^\s/@?#]+(/[^\s@?#]*)?)?$")]
"""A URL without user, password, query and fragment; empty for none."""

Env = dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Text]


class Values(Closed):
    """Values as people write them in YAML: camelCase there, snake_case in Python."""

    model_config = ConfigDict(alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _lay_over_defaults(cls, data: Any) -> Any:
        """Complete a section with its default for keys that are not given, as Helm merges it with values.yaml."""
        if not isinstance(data, dict):
            return data
        return {
            key: _over(_list_defaults(cls).get(key), value) if isinstance(value, dict) else value
            for key, value in data.items()
        }


@cache
def _list_defaults(section: type[Values]) -> dict[str, Any]:
    """Return the defaults of a section, by name and by key."""
    defaults: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        defaults[name] = defaults[field.alias or name] = field.default
    return defaults


def _over(default: Any, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    if isinstance(default, dict):
        return {**default, **given}
    if not isinstance(default, Values):
        return given
    kept = {name: getattr(default, name) for name in type(default).model_fields}
    names: dict[str | None, str] = {field.alias: name for name, field in type(default).model_fields.items()}
    for key, value in given.items():
        name = names.get(key, str(key))
        kept[name] = _over(kept.get(name), value)
    return kept
