"""The base of every model in rayhelm.

Closed (`extra="forbid"`): a mistyped key is an error at its line, not a setting that is silently lost.
Frozen: data flows one way, from the fleet file to the values.
Attribute docstrings are the field descriptions: the JSON schemas, `rayhelm explain` and the README tables are read
from them, so a field is described once, beside its type.
"""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["Closed", "ClosedCamel"]


class Closed(BaseModel):
    """A record that knows all of its keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        populate_by_name=True,
        protected_namespaces=(),
    )


class ClosedCamel(Closed):
    """A record that people write in YAML: keys in camelCase, as everywhere in Kubernetes."""

    model_config = ConfigDict(alias_generator=to_camel)
