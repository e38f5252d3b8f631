"""The circuit that stops a request which ends its servers."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Values

__all__ = ["Circuit"]


class Circuit(Values):
    """Stops a JSON request that was sent completely and whose connections closed without a response."""

    enabled: bool = True
    """`false`: such a request is forwarded each time that a client sends it."""
    lost_connections: Annotated[int, Field(ge=1, le=1000)] = 2
    """Closed connections after which a body is refused for its tenant and model, with 503 and Retry-After. With
    `retries.emptyResponse` a lost request counts as two. Each pod counts on its own, for an hour."""
    server_errors: bool = False
    """`true`: a response 500 counts as well. Serve sends it when a replica dies during a request, and for each error in
    the code of an application."""
    stop_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Time for which it is refused. It doubles with each further loss, up to an hour."""
