"""Read objects from an API server. Every failure says whether access, the kind or the server is missing.

With the `kubernetes` package, not with kubectl: a program in a pod needs no second binary, one connection serves all
reads, and a missing right (403) differs from a missing kind (404).
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from rayhelm.errors import MissingError, RayhelmError
from rayhelm.live.cluster.kinds import Kind

__all__ = [
    "AbsentError",
    "ClusterReader",
    "ExpiredError",
    "ForbiddenError",
    "Object",
    "ReadError",
    "Transport",
    "check_version",
    "connect",
    "connect_transport",
    "raise_for_status",
]

Object = dict[str, Any]
_PAGE = 500
"""Objects in each part of a list, as kubectl asks for."""
_TIMEOUT_S = (5, 60)
"""Seconds for a connection, and for a response."""


class ReadError(RayhelmError):
    """The API server answered, but not with what was asked for."""


class ForbiddenError(ReadError):
    """The account has no right to read this."""


class AbsentError(ReadError):
    """The object does not exist, or the API server has no such kind."""


class ExpiredError(ReadError):
    """The API server no longer has the rest of a list."""


class Transport(Protocol):
    """A connection to an API server."""

    def get(self, path: str) -> tuple[int, Any]:
        """Return the status and the parsed JSON of a GET. Raises MissingError if nothing answers."""


class ClusterReader:
    """Reads from one cluster."""

    def __init__(self, transport: Transport, name: str = "") -> None:
        self._transport = transport
        self.name = name
        """How messages name the cluster: its context, or its address."""
        self.on_part: Callable[[str], None] | None = None
        """Is called with a sentence while a long list is read."""

    def list(self, kind: Kind, namespace: str = "", *, labels: str = "") -> list[Object]:
        """Return the objects of a kind, of all namespaces if none is given. `labels` is a selector like `a=b,!c`.

        Raises ForbiddenError, and AbsentError if the API server does not have the kind."""
        query = {"labelSelector": labels} if labels else {}
        try:
            return _list_pages(self, kind, namespace, {"limit": str(_PAGE), **query})
        except ExpiredError:
            # The server forgets a list after some minutes. As kubectl does, read it again in one part.
            return _list_pages(self, kind, namespace, query)

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        """Return one object. Raises ForbiddenError and AbsentError."""
        return self.get_path(kind.path(namespace, name))

    def get_path(self, path: str) -> Object:
        """Return what the API server has at a path. Raises ForbiddenError, AbsentError and ReadError."""
        status, answer = self._transport.get(path)
        raise_for_status("GET", path, status, answer, self.name)
        return dict(answer)


def _list_pages(reader: ClusterReader, kind: Kind, namespace: str, query: dict[str, str]) -> list[Object]:
    found: list[Object] = []
    asked = set[str]()
    while True:
        path = f"{kind.path(namespace)}?{urlencode(query)}".rstrip("?")
        page = _get_part(reader, path, kind, len(found))
        items, metadata = page.get("items", []), page.get("metadata", {})
        is_list = isinstance(items, list) and all(isinstance(item, dict) for item in items)
        if not is_list or not isinstance(metadata, dict):
            raise ReadError(f"GET {path}: the answer is no list of objects")
        # Items of a list have no kind of their own.
        found += [{"apiVersion": kind.api_version, "kind": kind.name, **item} for item in items]
        if not (rest := metadata.get("continue")):
            return found
        if rest in asked:
            raise ReadError(f"GET {path}: the server answers with the same part again and again")
        asked.add(rest)
        if reader.on_part:
            left = metadata.get("remainingItemCount")
            reader.on_part(f"{kind.plural}: {len(found)} read, {left if isinstance(left, int) else 'more'} to follow")
        query = {**query, "continue": rest}


def _get_part(reader: ClusterReader, path: str, kind: Kind, read: int) -> Object:
    """Return one part of a list. A server that stops in the middle of it is there, and the kubeconfig is right."""
    try:
        return reader.get_path(path)
    except MissingError as error:
        if not read:
            raise
        raise ReadError(
            f"{error.what}. It answered before: {read} {kind.plural} were read. Run the command again when the API"
            " server is less busy"
        ) from None


def raise_for_status(method: str, path: str, status: int, answer: Any, cluster: str) -> None:
    """Raise MissingError, ForbiddenError, AbsentError or ReadError, unless the request succeeded with an object."""
    if status in (200, 201, 202) and isinstance(answer, dict):
        return
    reason = str(answer.get("message", "")) if isinstance(answer, dict) else ""
    if status == 401:
        raise MissingError(
            f"cluster {cluster} does not accept the credentials of the kubeconfig",
            "kubectl auth whoami    # log in as your provider describes, then run the command again",
        )
    kinds: Mapping[int, type[ReadError]] = {403: ForbiddenError, 404: AbsentError, 410: ExpiredError}
    raise kinds.get(status, ReadError)(f"{method} {path}: {status} {reason}".strip())


def connect(context: str = "", kubeconfig: Path | None = None) -> ClusterReader:
    """Connect with the kubeconfig, or with the service account of the pod that this runs in.

    Raises MissingError if there is no cluster, if it does not answer, or if the package `kubernetes` is missing."""
    transport, name = connect_transport(context, kubeconfig)
    reader = ClusterReader(transport, name)
    check_version(reader)
    return reader


def check_version(reader: ClusterReader) -> None:
    """Raise MissingError unless an API server answers. A proxy that asks for a login answers every path with a page,
    which must not be taken for an empty cluster."""
    try:
        answer = reader.get_path("/version")
    except ForbiddenError as error:
        raise MissingError(
            f"cluster {reader.name} forbids to read its version: {error}",
            "kubectl auth can-i get /version    # ClusterRole system:public-info-viewer allows it",
        ) from None
    if not {"major", "minor"} <= answer.keys():
        raise MissingError(f"what answers for cluster {reader.name} is no Kubernetes API server", _how_to_choose())


def connect_transport(context: str, kubeconfig: Path | None) -> tuple["_ApiTransport", str]:
    """Return a connection, and the name of the cluster. Raises MissingError without kubeconfig or package."""
    try:
        from kubernetes.config.config_exception import ConfigException
    except ImportError:
        raise MissingError(
            "the package `kubernetes` is not installed", "pip install 'rayhelm[cluster]'    # reads live clusters"
        ) from None
    import yaml

    if kubeconfig and not kubeconfig.exists():
        raise MissingError(f"no cluster: there is no file {kubeconfig}", _how_to_choose())
    try:
        client, name = _load(context, kubeconfig)
    # The package does not check what it reads: a file with other types ends in the error of their first use.
    except (ConfigException, OSError, yaml.YAMLError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise MissingError(f"no cluster: the kubeconfig cannot be used: {error}", _how_to_choose()) from None
    return _ApiTransport(client, name), name


class _ApiTransport:
    """A connection through the `kubernetes` package."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    def get(self, path: str) -> tuple[int, Any]:
        return self.request("GET", path)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, Any]:
        """Return the status and the parsed JSON of a request. Raises MissingError if nothing answers."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        headers = {"Accept": "application/json", **self._client.default_headers}
        if content_type:
            headers["Content-Type"] = content_type
        host = self._client.configuration.host
        try:
            # Once for each request: tokens are renewed.
            self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            response = self._client.call_api(method, f"{host}{path}", headers, body, _request_timeout=_TIMEOUT_S)
            status, body = response.status, response.read()
        except ApiException as error:
            status, body = error.status or 0, error.body or b""
        except (HTTPError, OSError) as error:
            raise MissingError(
                f"cluster {self._name} at {host} does not answer: {_find_reason(error)}", _how_to_choose()
            ) from None
        try:
            return status, json.loads(body or b"{}")
        except (ValueError, RecursionError):
            return status, {"message": bytes(body[:200]).decode(errors="replace")}


def _load(context: str, kubeconfig: Path | None) -> tuple[Any, str]:
    """Return an API client and the name of the cluster."""
    import os

    from kubernetes import config
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config.incluster_config import SERVICE_TOKEN_FILENAME

    settings = Configuration()
    is_in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and Path(SERVICE_TOKEN_FILENAME).is_file()
    if is_in_pod and not (context or kubeconfig or os.environ.get("KUBECONFIG")):
        config.load_incluster_config(client_configuration=settings)
        name = "of this pod"
    else:
        file = str(kubeconfig) if kubeconfig else None
        config.load_kube_config(file, context or None, client_configuration=settings, persist_config=False)
        name = f"`{context or config.list_kube_config_contexts(file)[1]['name']}`"
    # The package would try four times, and print a warning for each.
    settings.retries = False
    settings.connection_pool_maxsize = 16
    return ApiClient(configuration=settings), name


def _find_reason(error: BaseException) -> str:
    """The innermost reason: the package wraps `connection refused` three times."""
    reason = getattr(error, "reason", None)
    text = str(reason or error)
    return text.rpartition(": ")[2] if "object at 0x" in text else text


def _how_to_choose() -> str:
    return (
        "kubectl config get-contexts    # choose one with --context NAME, or a file with $KUBECONFIG\n"
        "# then check the connection with: kubectl version\n"
        "# no kubeconfig yet: https://kubernetes.io/docs/tasks/access-application-cluster/configure-access-multiple-clusters"
    )
