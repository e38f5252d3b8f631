"""Logs of the Ray pods."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.ray_service.resources import ContainerResources, build_resources

__all__ = ["LogFilePattern", "PodLogs", "StdoutLogs"]

LogFilePattern = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9*?_\[][A-Za-z0-9*?_.\[\]-]*(/[A-Za-z0-9*?_\[][A-Za-z0-9*?_.\[\]-]*)*$")
]
"""Pattern of files below Ray's log folder, without `..` and not absolute."""


class StdoutLogs(Values):
    """Container `logs` of head and workers. It writes Ray's log files to its stdout as JSON, one object per line, for
    `kubectl logs` and the log agent of the node."""

    enabled: bool = False
    """Add the container. An edit starts a new cluster."""
    files: Annotated[list[LogFilePattern], Field(min_length=1)] = [
        "serve/*.log",
        "worker-*.out",
        "worker-*.err",
        "gcs_server.err",
        "raylet.err",
    ]
    """Files below `/tmp/ray/session_latest/logs`, as patterns. By default those of Ray Serve, of vLLM and of
    crashes. An edit starts a new cluster."""
    resources: ContainerResources = build_resources(cpu="100m", memory="64Mi")
    """Resources of the container. Ray does not count them. An edit starts a new cluster."""


class PodLogs(Values):
    """Logs of the Ray pods. `serve.logging` has the format and the level of Ray Serve's."""

    stdout: StdoutLogs = StdoutLogs()
    """Container that writes Ray's log files to stdout. Ray writes logs to files in the pod only."""
