"""What can be called: models, their versions, and the RayServices that hold them."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.catalog.tasks import Task
from rayhelm.values.gateway.network import Peer
from rayhelm.values.ray_service.base import Cidr, Name, Port, Values

__all__ = ["Health", "Model", "ModelId", "Version"]

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
ModelId = Annotated[str, Field(pattern=rf"^({_PART}/)*[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=96)]
"""Parts that begin with a letter or a digit: it is an address too, and one with `//` or `..` leads elsewhere."""
Path = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9][A-Za-z0-9._-]*)+$", max_length=200)]
Route = Annotated[str, Field(pattern=r"^/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$", max_length=200)]
Host = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)?$", max_length=253)]


class Endpoint(Values):
    """A Service that holds the model; several of a version are sites or services with the same weights."""

    service: Name | Literal[""] = ""
    """RayService, by the name of its `ray-service` release: `<service>-serve-svc` is called."""
    namespace: Name | Literal[""] = ""
    """Its namespace; empty for the gateway's own."""
    host: Host = ""
    """Instead of `service`: DNS name or IPv4 address of something else that serves the model."""
    peer: Peer = Peer()
    """Pods behind `host`, for the network policy."""
    cidrs: list[Cidr] = []
    """Addresses of `host`, for the network policy."""
    port: Port = 8000
    """HTTP port: `serve.port` of the release. The network policy names it too, so it has to be the pods' own."""
    weight: Annotated[int, Field(ge=1, le=256)] = 100
    """Share of this endpoint against the others of its version."""


class Version(Values):
    """One version of a model: a RayService, or several with the same weights."""

    weight: Annotated[int, Field(ge=0, le=100)] = 100
    """Percent of the requests that name no version; all versions of a model together have 100. 0: only by name."""
    route_prefix: Route
    """Path of the Serve application, as `routePrefix` in the `ray-service` release (`/<application>` there)."""
    endpoints: dict[Name, Endpoint] = {}
    """Who serves it, by name."""


class LoadBalancing(Values):
    """Which endpoint of a version gets a request, where there are several."""

    kind: Literal["PrefixHash", "LeastConnections"] = "PrefixHash"
    """`PrefixHash` sends chats that start alike to the endpoint that has this prefix in its cache. `LeastConnections`
    sends a request to the endpoint with the fewest requests in flight; every task other than `chat` uses it."""
    prefix_bytes: Annotated[int, Field(ge=16, le=4096)] = 256
    """Bytes of the first message that count as its beginning."""
    load_percent: Annotated[int, Field(ge=101, le=1000)] = 150
    """Bound of the load: an endpoint with more than this percentage of the average yields to the next one."""


class Operation(Values):
    """One path of a custom application."""

    method: Literal["POST", "GET"] = "POST"
    """HTTP method."""


class Model(Values):
    """One model. Clients reach it by the `model` of the body at `/v1/...`, or at `<path>/v1/...`."""

    task: Task = "chat"
    """What it does; decides which paths are open. Bodies of `transcribe` and `custom` are not read, so those are
    reached by `<path>/...` alone."""
    path: Path | Literal[""] = ""
    """Path of its own; empty for `/<model>`."""
    versions: dict[Name, Version] = {}
    """Versions side by side. Clients may name one in the header `x-model-version`; a rollback is one weight."""
    load_balancing: LoadBalancing = LoadBalancing()
    """Which endpoint gets a request."""
    operations: dict[Path, Operation] = {}
    """Paths that a `custom` application has, below `<path>`: `/v1/images/generations`. Nothing else is let through."""


class Health(Values):
    """Probes of `/-/healthz`. A busy service answers late: where all endpoints of a version fail their probes, they are
    called all the same."""

    interval_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 5
    """Seconds between probes, and for an answer."""
    failures: Annotated[int, Field(ge=1)] = 6
    """Failed probes in a row after which an endpoint gets no more requests, as long as another is well."""
