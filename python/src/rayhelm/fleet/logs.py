"""Logs of the services of a cluster."""

from rayhelm.fleet.base import Record

__all__ = ["Logs"]


class Logs(Record):
    """Logs of the services. The gateway logs each request in any case."""

    requests: bool = False
    """Log each request in Ray Serve and in the engine too, with the request id of the gateway: tenant, times and
    tokens, never its text. The tenant and the engine's line need an `image` with rayhelm."""
    stdout: bool = False
    """Write Ray's log files to stdout as JSON, for `kubectl logs` and the log agent of the nodes. It adds a container
    `logs` to each Ray pod, so an edit starts new clusters."""
