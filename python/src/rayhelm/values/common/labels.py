"""Labels, names and tolerations, in the forms that Kubernetes admits.

The API server looks at those of a pod template only when it makes the pod: a RayService with a wrong one is accepted,
and its pods are refused again and again.
"""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.config import JsonDict

from rayhelm.values.common.base import Text, Values

__all__ = [
    "Annotations",
    "ExtendedResource",
    "LabelKey",
    "LabelValue",
    "Labels",
    "Namespace",
    "ObjectName",
    "SecretKeyName",
    "Toleration",
]

_PART = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_ANY_CASE = _DNS.replace("a-z", "A-Za-z")
_KEY_LENGTH = 253 + 1 + 63
_TEXT_OR_NUMBER: JsonDict = {"type": ["string", "number"], "minimum": 0, "maximum": 2**53}
"""Of a number: a sign cannot begin a value, and of more digits Helm loses the last."""

LabelKey = Annotated[str, Field(pattern=rf"^({_DNS}/)?{_PART}$", max_length=_KEY_LENGTH)]
"""A name of at most 63 characters, after a domain if any: `example.com/pool`."""

LabelValue = Annotated[
    str, Field(pattern=f"^({_PART})?$", coerce_numbers_to_str=True, json_schema_extra=_TEXT_OR_NUMBER)
]
"""At most 63 characters, in which YAML may have seen a number."""

Labels = dict[LabelKey, LabelValue]

Annotations = dict[Annotated[str, Field(pattern=rf"^({_ANY_CASE}/)?{_PART}$", max_length=_KEY_LENGTH)], Text]

ObjectName = Annotated[str, Field(pattern=f"^{_DNS}$", max_length=253)]
"""A DNS-1123 subdomain: names of most objects, Secrets and classes among them."""

Namespace = Annotated[str, Field(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
"""A DNS-1123 label."""

SecretKeyName = Annotated[str, Field(pattern=r"^[-._A-Za-z0-9]+$", max_length=253)]
"""Key inside a Secret."""

ExtendedResource = Annotated[str, Field(pattern=f"^{_DNS}/{_PART}$", max_length=_KEY_LENGTH)]
"""A device as its plugin names it, with a domain: `example.com/gpu`."""


class Toleration(Values):
    """A taint that pods tolerate, as Kubernetes spells it."""

    key: LabelKey | None = None
    """Key of the taint; left out beside `Exists`: every taint."""
    operator: Literal["Exists", "Equal"] | None = None
    """`Exists` tolerates the taint whatever its value; `Equal` when left out."""
    value: LabelValue | None = None
    """Value of the taint, for `Equal`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; any when left out."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """Seconds that a pod stays beside a `NoExecute` taint; for good when left out."""
