"""Types of single values, and of what most objects have."""

from datetime import datetime
from typing import Annotated, Required

from pydantic import AfterValidator, Field

# pydantic needs it below Python 3.12, and brings it.
from typing_extensions import TypedDict


def _check_time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without a time zone")
    return text


Time = Annotated[str, AfterValidator(_check_time)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
QUANTITY = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?$"
Quantity = Annotated[str, Field(pattern=QUANTITY)] | Whole | Annotated[float, Field(allow_inf_nan=False)]
"""`200m`, `256Mi` or 2."""
Name = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
"""Name of another object; commands of fixes and paths have it. A CRD with a pod template sets it to an empty text."""
Texts = dict[str, str]


class LiveManager(TypedDict, total=False):
    manager: str


class LiveMetadata(TypedDict, total=False):
    name: Required[Annotated[str, Field(min_length=1)]]
    namespace: str
    labels: Texts
    annotations: Texts
    generation: Whole
    creationTimestamp: Time
    managedFields: list[LiveManager]


class LiveCondition(TypedDict, total=False):
    type: Required[str]
    status: str
    reason: str
    message: str
    lastTransitionTime: Time


class LiveConditions(TypedDict, total=False):
    conditions: list[LiveCondition]


class LiveObject(TypedDict):
    """Objects of which only the metadata is read."""

    metadata: LiveMetadata


class LiveExpression(TypedDict, total=False):
    key: Required[str]
    operator: Required[str]
    values: list[str]


class LiveSelector(TypedDict, total=False):
    matchLabels: Texts
    matchExpressions: list[LiveExpression]
