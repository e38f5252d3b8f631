"""Sizes and times that a client may take."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.ray_service.base import Values

__all__ = ["Limits", "Retries", "Timeouts"]

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[int, Field(ge=1, le=2_000_000)]


class Limits(Values):
    """Sizes. A JSON body is held whole, because the model may stand at its end; so memory bounds it."""

    body_bytes: Annotated[int, Field(ge=1024, le=1_000_000_000)] = 1_048_576
    """Largest JSON body; larger ones get 413."""
    upload_bytes: Annotated[int, Field(ge=1024)] = 26_214_400
    """Largest body of `transcribe` and `custom`, which is streamed; it has to say its length."""
    header_bytes: Annotated[int, Field(ge=1024, le=1_048_576)] = 16_384
    """Largest headers; larger ones get 431."""
    connections: Count = 1000
    """Connections of a pod from clients; more wait to be taken."""


class Timeouts(Values):
    """Times, in seconds."""

    connect_seconds: Seconds = 5
    """For a connection to an endpoint, after which another one is tried."""
    header_seconds: Seconds = 10
    """For a client to send the headers."""
    body_seconds: Seconds = 30
    """For a client to send a JSON body."""
    client_seconds: Seconds = 60
    """For a client to take, or to send, the next bytes."""
    server_seconds: Seconds = 1260
    """Silence of an upstream, before its answer and within it; more than `serve.requestTimeoutSeconds` of the
    `ray-service` release, whose own answer to that is a better one. A stream that goes on is never cut."""
    keep_alive_seconds: Seconds = 75
    """For which an idle connection of a client stays open; more than the 60 of most controllers in front, or they meet
    closed ones."""
    key_refresh_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 2
    """Between two looks at the files with keys; the kubelet brings a changed Secret into the pod in about a minute."""


class Retries(Values):
    """What is tried again when an upstream is lost, at most twice. What never reached a server always is; after the
    first byte of an answer nothing is."""

    empty_response: bool = True
    """Also requests that a server has read, where it broke off before its answer, or answered 500: so Serve says of a
    replica that died over a request. The work may be done again, and a request that fells whoever reads it fells
    three; clients of OpenAI do the same by themselves. It copies a buffer, as large as `limits.bodyBytes`, for each
    request: with the default of that, a core passes on a fifth of what it would. Off: clients meet each pod that
    dies."""
