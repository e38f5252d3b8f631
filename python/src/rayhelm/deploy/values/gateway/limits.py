"""Sizes, timeouts and retries of requests."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values

__all__ = ["Limits", "RateLimitHeaders", "RequestValidation", "Retries", "Timeouts", "UsageHeaders"]

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[int, Field(ge=1, le=2_000_000)]


class Limits(Values):
    """Sizes. The gateway holds a complete JSON body in memory, because the field `model` can be at its end."""

    body_bytes: Annotated[int, Field(ge=1024, le=1_000_000_000)] = 1_048_576
    """Largest JSON body. A larger one gets 413."""
    upload_bytes: Annotated[int, Field(ge=1024)] = 26_214_400
    """Largest body of the tasks `transcribe` and `custom`. It needs the header Content-Length. Above `bodyBytes` it is
    streamed, and not retried after the endpoint closed the connection."""
    header_bytes: Annotated[int, Field(ge=1024, le=1_048_576)] = 16_384
    """Largest request headers. Larger ones get 431."""
    connections: Count = 1000
    """Client connections per pod. Further clients wait until a connection is free."""
    source_idle_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """Percentage of `connections` that one client address may hold without a request in flight that has a valid key.
    Further connections of that address are closed at once; with three quarters of all connections in use, a fifth of
    the percentage applies. An IPv6 address counts as its /64 network. 100: no limit, for clients that all connect
    through one proxy."""


class RateLimitHeaders(Values):
    """Response headers with the limits of the tenant, as OpenAI names them: `x-ratelimit-limit-requests`,
    `x-ratelimit-remaining-requests`, `x-ratelimit-reset-requests`, and the same for `-tokens` if the tenant has
    `tokensPerMinute`."""

    enabled: bool = False
    """Send them."""


class UsageHeaders(Values):
    """Response headers with the tokens of a response that is one JSON document: `x-usage-prompt-tokens`,
    `x-usage-completion-tokens` and `x-usage-total-tokens`. A stream has no such header."""

    enabled: bool = False
    """Send them, for responses of up to 64 KiB. The gateway then waits for the whole response before it forwards it."""


class Timeouts(Values):
    """Timeouts, in seconds."""

    connect_seconds: Seconds = 5
    """To connect to an endpoint. After it, the gateway retries on another endpoint."""
    header_seconds: Seconds = 10
    """To receive the request headers."""
    body_seconds: Seconds = 30
    """To receive a JSON body, or an upload of up to `limits.bodyBytes`."""
    client_seconds: Seconds = 60
    """Without data from or to a client while a request or response is transferred."""
    server_seconds: Seconds = 1260
    """Without data from a model server, before its response and within it. The total length of a stream has no limit.
    Set it above `serve.requestTimeoutSeconds` of the `ray-service` release, so that clients get Serve's own error."""
    keep_alive_seconds: Seconds = 75
    """An idle client connection stays open this long. Set it above the keep-alive timeout of the load balancer in front
    (usually 60), or that one reuses closed connections."""
    key_refresh_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 2
    """Between two reads of the mounted key files. The kubelet updates them about a minute after a change."""
    key_max_age_seconds: Seconds = 60
    """A pod that has not read all key files for this long is not ready, because it would still accept revoked keys."""


class Retries(Values):
    """One retry, on another endpoint if the version has one. A failed connection is always retried.
    Nothing is retried after the first byte of the response, after `timeouts.serverSeconds`, or after a status other
    than 500."""

    empty_response: bool = True
    """Also retry a request if its endpoint closed the connection before the first byte of the response or answered 500.
    This covers all JSON bodies, and uploads (`transcribe`, `custom`) of up to `limits.bodyBytes`, which
    the gateway then receives completely before it forwards them. The model server may do the work twice, and a
    request that crashes a replica can crash two. HAProxy keeps a copy of each request: from 3.4.5 on a small one
    for requests of up to 64 KiB; before, a buffer of `limits.bodyBytes` for each, with which a core handles a fifth
    of the requests. `false`: the client gets the 502 or the 500."""


RefusedField = Literal[
    "chat_template",
    "ec_transfer_params",
    "kv_transfer_params",
    "media_io_kwargs",
    "mm_processor_kwargs",
    "priority",
    "request_id",
    "vllm_xargs",
]
"""Fields of vLLM by which a client would choose what the operator chooses."""


class RequestValidation(Values):
    """Checks of JSON requests before a model server gets them, beside those of the field `model`."""

    enabled: bool = True
    """`true`: a request needs `Content-Type: application/json` and the fields that its operation requires: `messages`,
    `prompt`, `input`, or the two texts of a score. `false`: the model server checks them."""
    allowed_fields: dict[RefusedField, Annotated[str, Field(min_length=1)]] = {}
    """Fields that clients may send in JSON bodies and in forms of `transcribe`, each with the reason. The gateway
    refuses those without an entry. They choose where the KV cache is sent (`kv_transfer_params`, `ec_transfer_params`,
    `vllm_xargs`), which template runs (`chat_template`), whose requests wait (`priority`), how media are decoded
    (`media_io_kwargs`, `mm_processor_kwargs`) and the id of a request in the engine (`request_id`)."""
