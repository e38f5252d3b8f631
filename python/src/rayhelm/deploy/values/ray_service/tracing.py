"""Traces of requests."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values

__all__ = ["RayTracing"]


class RayTracing(Values):
    """Traces of requests through Ray Serve and vLLM, sent to an OpenTelemetry collector. They contain no text of a
    request or a response. They need `image.includesRayhelm`. An edit starts a new cluster."""

    enabled: bool = False
    """Send traces."""
    endpoint: Annotated[
        str, Field(pattern=r"^(https?://[A-Za-z0-9.-]+:[0-9]{1,5}(/[A-Za-z0-9._/-]*)?)?$", max_length=253)
    ] = ""
    """URL of the OTLP receiver with its port, for example `http://otel-collector.observability:4317`. Without a path,
    `http/protobuf` adds `/v1/traces`. Required with `enabled`."""
    protocol: Literal["grpc", "http/protobuf"] = "grpc"
    """Protocol of the receiver."""
    sampling_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of the requests that are traced, of those without a `traceparent` header. If there is one, as rayhelm's
    gateway sends, it decides."""
