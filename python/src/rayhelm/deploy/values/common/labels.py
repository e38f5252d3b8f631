"""Labels, names and tolerations, in the forms that Kubernetes accepts.

The API server checks those of a pod template only when the pod is created: it accepts a RayService with a wrong label,
and then refuses each of its pods.
"""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.config import JsonDict

from rayhelm.deploy.values.common.base import Text, Values

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
"""Bounds of a number: a label value must not begin with a sign, and Helm rounds numbers with more digits."""

LabelKey = Annotated[str, Field(pattern=rf"^({_DNS}/)?{_PART}$", max_length=_KEY_LENGTH)]
"""A name of at most 63 characters, with an optional domain before it: `example.com/pool`."""

LabelValue = Annotated[
    str, Field(pattern=f"^({_PART})?$", coerce_numbers_to_str=True, json_schema_extra=_TEXT_OR_NUMBER)
]
"""A text of at most 63 characters that YAML may parse as a number."""

Labels = dict[LabelKey, LabelValue]

Annotations = dict[Annotated[str, Field(pattern=rf"^({_ANY_CASE}/)?{_PART}$", max_length=_KEY_LENGTH)], Text]

ObjectName = Annotated[str, Field(pattern=f"^{_DNS}$", max_length=253)]
"""A DNS-1123 subdomain: the name of most objects, including Secrets and classes."""

Namespace = Annotated[str, Field(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
"""A DNS-1123 label."""

SecretKeyName = Annotated[str, Field(pattern=r"^[-._A-Za-z0-9]+$", max_length=253)]
"""Key in a Secret."""

ExtendedResource = Annotated[str, Field(pattern=f"^{_DNS}/{_PART}$", max_length=_KEY_LENGTH)]
"""An extended resource of a device plugin, with its domain: `example.com/gpu`."""


class Toleration(Values):
    """A taint that pods tolerate, in Kubernetes' shape."""

    key: LabelKey | None = None
    """Key of the taint. When absent with `Exists`: every taint."""
    operator: Literal["Exists", "Equal"] | None = None
    """`Exists` tolerates every value of the taint. `Equal` when absent."""
    value: LabelValue | None = None
    """Value of the taint, for `Equal`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; every effect when absent."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """Seconds that a pod stays on a node with a `NoExecute` taint; no limit when absent."""
