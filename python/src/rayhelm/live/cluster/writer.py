"""Create, apply and delete objects. Like `reader` with the `kubernetes` package: a pod needs no kubectl."""

import json
from pathlib import Path
from typing import Any, Protocol

from rayhelm.live.cluster.kinds import Kind
from rayhelm.live.cluster.reader import (
    ClusterReader,
    Object,
    Transport,
    check_version,
    connect_transport,
    raise_for_status,
)

__all__ = ["MANAGER", "ClusterWriter", "WritingTransport", "connect_writer"]

MANAGER = "rayhelm"
"""Field manager of what `apply` writes."""


class WritingTransport(Transport, Protocol):
    """A connection to an API server that also writes."""

    def send(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, Any]:
        """Return the status and the parsed JSON of a request with a body. Raises MissingError if nothing answers."""


class ClusterWriter(ClusterReader):
    """Reads from one cluster, and writes to it."""

    def __init__(self, transport: WritingTransport, name: str = "") -> None:
        super().__init__(transport, name)
        self._writing = transport

    def create(self, kind: Kind, item: Object) -> Object:
        """Create an object. Raises ForbiddenError and ReadError."""
        return self._send("POST", kind.path(item["metadata"].get("namespace", "")), item, "application/json")

    def apply(self, kind: Kind, item: Object) -> Object:
        """Apply an object server-side, as the field manager `rayhelm`. Raises ForbiddenError and ReadError."""
        metadata = item["metadata"]
        path = f"{kind.path(metadata.get('namespace', ''), metadata['name'])}?fieldManager={MANAGER}&force=true"
        return self._send("PATCH", path, item, "application/apply-patch+yaml")

    def delete(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Delete an object, and what it owns in the background. Nothing happens if it is gone already."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        status, answer = self._writing.send("DELETE", kind.path(namespace, name), options, "application/json")
        if status != 404:
            raise_for_status("DELETE", kind.path(namespace, name), status, answer, self.name)

    def _send(self, method: str, path: str, item: Object, content_type: str) -> Object:
        status, answer = self._writing.send(method, path, item, content_type)
        raise_for_status(method, path.partition("?")[0], status, answer, self.name)
        return dict(answer)


def connect_writer(context: str = "", kubeconfig: Path | None = None) -> ClusterWriter:
    """Connect as `reader.connect` does. Raises MissingError if no cluster answers."""
    client, name = connect_transport(context, kubeconfig)
    writer = ClusterWriter(_ApiWriter(client), name)
    check_version(writer)
    return writer


class _ApiWriter:
    """Adds requests with a body to a connection of the reader."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def get(self, path: str) -> tuple[int, Any]:
        status, answer = self._transport.get(path)
        return int(status), answer

    def send(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, Any]:
        # The package serializes JSON itself. Server-side apply takes YAML, and JSON is YAML.
        content = body if content_type == "application/json" else json.dumps(body)
        status, answer = self._transport.request(method, path, content, content_type)
        return int(status), answer
