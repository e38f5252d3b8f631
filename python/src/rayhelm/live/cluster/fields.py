"""Types of the fields that rayhelm reads from live objects.

An API server checks its own kinds, but not the texts inside them, and a CRD may be of another version. Every object is
parsed once, when it is read: code that reads these fields never meets another type. Other fields stay as they are.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from rayhelm.errors import RayhelmError
from rayhelm.live.cluster.kinds import Kind
from rayhelm.live.cluster.shapes.base import LiveObject
from rayhelm.live.cluster.shapes.others import (
    LiveApiService,
    LiveCertificate,
    LiveConfigMap,
    LiveDeviceClass,
    LiveEndpointSlice,
    LiveEvent,
    LiveHorizontalPodAutoscaler,
    LiveLimitRange,
    LiveNetworkPolicy,
    LiveNode,
    LivePersistentVolumeClaim,
    LivePodDisruptionBudget,
    LiveResourceQuota,
    LiveScaledObject,
    LiveServiceObject,
)
from rayhelm.live.cluster.shapes.pods import LiveDeployment, LiveJob, LivePod
from rayhelm.live.cluster.shapes.ray import LiveRayCluster, LiveRayService

__all__ = ["MalformedError", "describe_object", "parse_object", "parse_objects"]

Object = dict[str, Any]
_SIZE = 80


class MalformedError(RayhelmError):
    """A field of a live object has another type than rayhelm reads."""

    def __init__(self, item: Any, kind: Kind, problem: str) -> None:
        self.object, self.problem = describe_object(item, kind.name), _as_text(problem)
        super().__init__(f"{self.object}: {problem}")


def parse_object(kind: Kind, item: Any) -> Object:
    """Return an object without nulls, which mean the same as missing fields. Raises MalformedError."""
    try:
        return dict(_adapter(kind.name).validate_python(_drop_nulls(item)))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(str(part)[:_SIZE] for part in first["loc"])
        raise MalformedError(item, kind, f"{path}: {first['msg'][0].lower()}{first['msg'][1:]}".lstrip(": ")) from None
    except RecursionError:
        raise MalformedError(item, kind, "it has too many levels") from None


def parse_objects(kind: Kind, items: Iterable[Any]) -> tuple[list[Object], list[MalformedError]]:
    """Return the objects, and the errors of those with a field of another type."""
    good, malformed = list[Object](), list[MalformedError]()
    for item in items:
        try:
            good.append(parse_object(kind, item))
        except MalformedError as error:
            malformed.append(error)
    return good, malformed


def describe_object(item: Any, kind: str) -> str:
    """Return `KIND NAMESPACE/NAME` as far as an object of any form has them."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    names = [metadata.get(key) for key in ("namespace", "name")] if isinstance(metadata, Mapping) else []
    found = [_as_text(name[:253]) for name in names if isinstance(name, str) and name]
    return f"{kind} {'/'.join(found)}" if found else f"{kind} without a name"


def _as_text(text: str) -> str:
    """Return a text that can be written: JSON may have half of a character."""
    return text.encode("utf-8", "replace").decode()


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_drop_nulls(item) for item in value]
    return value


_TYPES: Mapping[str, Any] = {
    "APIService": LiveApiService,
    "Secret": LiveConfigMap,
    "Service": LiveServiceObject,
} | {
    each.__name__.removeprefix("Live"): each
    for each in (
        LiveCertificate,
        LiveConfigMap,
        LiveDeployment,
        LiveDeviceClass,
        LiveEndpointSlice,
        LiveEvent,
        LiveHorizontalPodAutoscaler,
        LiveJob,
        LiveLimitRange,
        LiveNetworkPolicy,
        LiveNode,
        LivePersistentVolumeClaim,
        LivePod,
        LivePodDisruptionBudget,
        LiveRayCluster,
        LiveRayService,
        LiveResourceQuota,
        LiveScaledObject,
    )
}


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    # The types below it have the same configuration.
    return TypeAdapter(with_config(ConfigDict(strict=True, extra="allow"))(_TYPES.get(kind, LiveObject)))
