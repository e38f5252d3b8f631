"""Models, their versions, and the endpoints that serve them."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Cidr, Name, Port, Values
from rayhelm.deploy.values.common.network import Peer
from rayhelm.facts.tasks import DataPath, Task

__all__ = ["Health", "Host", "Model", "ModelId", "Version"]

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
ModelId = Annotated[str, Field(pattern=rf"^({_PART}/)*[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=96)]
"""Each part starts with a letter or digit: the id is also a URL path, so `//` and `..` must not occur."""
Path = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9][A-Za-z0-9._-]*)+$", max_length=200)]
Route = Annotated[str, Field(pattern=r"^/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$", max_length=200)]
Host = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)?$", max_length=253)]


class Endpoint(Values):
    """A RayService or another host that serves the version."""

    service: Name | Literal[""] = ""
    """Name of the `ray-service` release. The gateway connects to its Service `<service>-serve-svc`."""
    namespace: Name | Literal[""] = ""
    """Namespace of the release; empty: that of the gateway."""
    host: Host = ""
    """Instead of `service`: DNS name or IPv4 address of another server."""
    peer: Peer = Peer()
    """Pods behind `host`; the NetworkPolicy allows egress to them."""
    cidrs: list[Cidr] = []
    """Addresses of `host`; the NetworkPolicy allows egress to them."""
    port: Port = 8000
    """HTTP port of the pods: `serve.port` of the release. The NetworkPolicy uses it too."""
    tls: bool = False
    """TLS to the endpoint, from version 1.2 on, also for health checks: `serve.tls` of the release. The gateway checks
    the certificate by `upstreamTls.certificateAuthority`, and sends nothing if it is not valid."""
    server_name: Host = ""
    """Name that the certificate must have, also sent as SNI; empty: the DNS name of the endpoint. Required with `tls`
    if `host` is an address."""
    weight: Annotated[int, Field(ge=1, le=256)] = 100
    """Weight of this endpoint relative to the other endpoints of the version."""


class Version(Values):
    """One version of a model. All its endpoints serve the same weights of the model."""

    weight: Annotated[int, Field(ge=0, le=100)] = 100
    """Percent of the requests that name no version. All versions of a model add up to 100. 0: reached by name
    only, and not by tenants with another pinned version."""
    route_prefix: Route | Literal[""] = ""
    """Path of the Serve application: its `routePrefix` in the `ray-service` release, by default `/<application>`.
    Required with `endpoints`."""
    endpoints: dict[Name, Endpoint] = {}
    """Servers of this version, by name. Empty: every request is forwarded to a gateway in `remoteGateways` that serves
    the version."""


class Session(Values):
    """What names the session of a request, such as a user or a conversation. Requests of one session then go to the
    same endpoint, whatever their prompts are."""

    header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]*$", max_length=64)] = ""
    """Header with the session, such as `x-session-id`; empty: none. Model servers do not get `x-session-id`."""
    fields: list[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]] = []
    """Fields of the body with the session, such as `prompt_cache_key` and `user`, if the request has no such header.
    The first one that is a text counts. Model servers get them unchanged."""


class LoadBalancing(Values):
    """How the endpoint of a version is selected. Has no effect with one endpoint."""

    kind: Literal["PrefixHash", "LeastConnections"] = "PrefixHash"
    """`PrefixHash` sends chats that start alike to the endpoint that has this prefix in its cache. `LeastConnections`
    sends a request to the endpoint with the fewest requests in flight; every task other than `chat` uses it."""
    session: Session = Session()
    """With `PrefixHash`: select the endpoint by the session of a request. A request without one is selected by its
    prefix."""
    prefix_bytes: Annotated[int, Field(ge=16, le=4096)] = 256
    """Length of the prefix: this many bytes of the first message, or of the prompt."""
    load_percent: Annotated[int, Field(ge=101, le=1000)] = 150
    """An endpoint with more than this percentage of the average load does not get the request; the next one does."""


class ModelPrefixCache(Values):
    """vLLM's prefix cache, if several tenants may call the model. The gateway then sets the field `cache_salt` of JSON
    bodies, so that a tenant finds only its own prefixes: from the time of a response it could learn others' prompts."""

    shared_reason: Annotated[str, Field(max_length=1000)] = ""
    """Why the tenants of the model share the prefix cache. Empty: each tenant has its own."""


class Operation(Values):
    """One path of a `custom` application."""

    method: Literal["POST", "GET"] = "POST"
    """HTTP method."""


class Model(Values):
    """One model. Clients use it at `/v1/...` with the field `model`, or at `<path>/v1/...`."""

    task: Task = "chat"
    """Task of the model. It decides which paths exist. The gateway does not read bodies of `transcribe` and `custom`,
    so clients use these at `<path>/...` only."""
    data_path: DataPath = "Python"
    """`serve.dataPath` of the releases that serve the model; if they differ, the first one of `Python`, `HAProxy`,
    `Direct`. Some URLs need `Direct`, and get 404 with the reason otherwise. A vLLM server without Ray is `Direct`."""
    path: Path | Literal[""] = ""
    """URL path of the model; empty: `/<model>`."""
    aliases: list[ModelId] = []
    """Further names of the model, for the field `model` of requests to `/v1/...`. Tenants that may call the model may
    use them. The Serve application must accept them too: `aliases` of the model in its `ray-service` release."""
    versions: dict[Name, Version] = {}
    """Versions of the model, by name. Clients can select one with the header `x-model-version`."""
    load_balancing: LoadBalancing = LoadBalancing()
    """How the endpoint of a request is selected."""
    prefix_cache: ModelPrefixCache = ModelPrefixCache()
    """vLLM's prefix cache: each tenant's own, or shared."""
    context_tokens: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    """Most tokens of a prompt with its output: `max_model_len` of its engine. It bounds what a response counts for
    tenants with `tokensPerMinute`. 0: not known; then only `max_tokens` of the request, or else the bytes of the
    response, bound the output."""
    spill_above: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Requests in flight of a version, per pod, from which on further ones go to a gateway in `remoteGateways`. 0: only
    when no endpoint is available."""
    operations: dict[Path, Operation] = {}
    """Paths of a `custom` application below `<path>`, such as `/v1/images/generations`. Other paths get 404."""


class Health(Values):
    """Health checks of endpoints: `GET /-/healthz`. If they fail on all endpoints of a version, the gateway still sends
    requests to all of them, because a busy service answers its health check late."""

    interval_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 5
    """Seconds between health checks, and the timeout of one."""
    failures: Annotated[int, Field(ge=1)] = 6
    """Failed health checks in a row after which an endpoint gets no requests while another endpoint is healthy."""
