"""Traces of requests."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values

__all__ = ["GatewayTracing"]


class GatewayTracing(Values):
    """Traces of requests. The gateway sends no spans itself: it gives each request a trace id, which is in its log too,
    and decides which requests are sampled. The releases of `ray-service` follow (`tracing`). No header of a client
    changes that decision."""

    enabled: bool = False
    """Send the header `traceparent` to the endpoints. `false`: the gateway removes it from requests."""
    sampling_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of the requests that are traced."""
    client_traces: Literal["Replace", "Continue"] = "Replace"
    """`Replace`: each request starts a new trace. `Continue`: a valid `traceparent` of a client keeps its trace id and
    span id, so that the trace is a part of the client's. A client can then put many requests into one trace."""
