"""Digests of tags, read from registries by the API of OCI (`/v2/`)."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rayhelm.deploy.images.reference import ImageReference
from rayhelm.errors import MissingError

if TYPE_CHECKING:
    import httpx

__all__ = ["read_digests"]

_ACCEPT = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_HOSTS = {"docker.io": "registry-1.docker.io"}
"""Registries whose API has another host."""
_LOGINS = {"docker.io": "https://index.docker.io/v1/"}
"""Registries that `docker login` writes with another key."""
_MOST_REDIRECTS = 5
_MOST_BYTES = 4 << 20
"""Registries accept manifests of up to 4 MiB."""
_TIMEOUT = 30.0
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')


def read_digests(images: list[ImageReference]) -> dict[ImageReference, str]:
    """Return the digest of each tag: of all architectures, if the registry has several. Logs in as `docker login` has
    written it into ~/.docker/config.json, without helpers. Raises MissingError with all images that have none."""
    import httpx

    found: dict[ImageReference, str] = {}
    problems = []
    with httpx.Client(timeout=_TIMEOUT, headers={"Accept": ", ".join(_ACCEPT)}, follow_redirects=False) as client:
        for image in images:
            try:
                found[image] = _read_digest(client, image)
            # UnicodeError: a host with a label that DNS does not allow.
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                problems.append(f"{image}: the registry does not answer: {error or type(error).__name__}")
            except MissingError as error:
                problems.append(f"{image}: {error.what}")
    if problems:
        raise MissingError("digests could not be read, so nothing was written:\n" + "\n".join(problems), _HOW)
    return found


_HOW = "check name and tag; for a registry that needs a login: docker login REGISTRY, without a credential helper"


def _read_digest(client: "httpx.Client", image: ImageReference) -> str:
    import httpx

    registry, _, name = image.full_repository.partition("/")
    url = f"{_scheme(registry)}://{_HOSTS.get(registry, registry)}/v2/{name}/manifests/{image.tag}"
    login = _read_login(registry)
    with _get(client, url, {}) as answer:
        content = _read(answer)
    if answer.status_code == 401:
        asked = httpx.URL(url)
        # The login is for the registry alone: the host of a redirect can name any token server.
        if (answer.url.scheme, answer.url.netloc) != (asked.scheme, asked.netloc):
            raise MissingError(f"the registry redirects to {answer.url.host}, which needs a login")
        wanted = answer.headers.get("www-authenticate", "")
        with _get(client, url, {"Authorization": _authorize(client, registry, wanted, login)}) as answer:
            content = _read(answer)
    if answer.status_code == 404:
        raise MissingError("the registry has no such tag")
    if answer.status_code in {401, 403}:
        raise MissingError("the registry refuses to show it " + ("to this login" if login else "without a login"))
    if answer.status_code != 200:
        raise MissingError(f"the registry answers with status {answer.status_code}")
    return _check_manifest(answer.headers, content)


def _check_manifest(headers: "httpx.Headers", content: bytes) -> str:
    """Return the digest of a manifest. A proxy or a login page can answer with status 200 too."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _ACCEPT:
        raise MissingError(f"the registry answers with Content-Type `{kind or 'none'}`, which is no manifest")
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        raise MissingError(f"the registry answers with {len(content)} bytes that are not JSON") from None
    version = manifest.get("schemaVersion") if isinstance(manifest, dict) else None
    if version != 2:
        raise MissingError(f"the registry answers with JSON of schemaVersion {version}, and a manifest has 2")
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if (named := headers.get("docker-content-digest", digest)) != digest:
        raise MissingError(f"the registry answers with content of digest {digest}, and names digest {named}")
    return digest


@contextmanager
def _get(client: "httpx.Client", url: str, headers: dict[str, str]) -> "Iterator[httpx.Response]":
    """Yield the answer at the end of redirects. Another host gets no Authorization: httpx removes it."""
    request = client.build_request("GET", url, headers=headers)
    for _ in range(_MOST_REDIRECTS + 1):
        answer = client.send(request, stream=True)
        try:
            if answer.next_request is None:
                yield answer
                return
            request = answer.next_request
        finally:
            answer.close()
        # Without TLS from the start: the registry is on this computer, and so is what it names.
        local = answer.url.scheme == "http" and _scheme(request.url.netloc.decode()) == "http"
        if request.url.scheme != "https" and not local:
            raise MissingError(f"the registry redirects to {request.url.host}, without TLS")
    raise MissingError(f"the registry redirects more than {_MOST_REDIRECTS} times")


def _read(answer: "httpx.Response") -> bytes:
    content = b""
    for part in answer.iter_bytes():
        content += part
        if len(content) > _MOST_BYTES:
            raise MissingError(f"the registry answers with more than {_MOST_BYTES >> 20} MiB")
    return content


def _authorize(client: "httpx.Client", registry: str, wanted: str, login: str) -> str:
    """Return the header that the registry asks for: the login itself, or a token that its server gives for it."""
    import httpx

    kind, _, text = wanted.partition(" ")
    basic = f"Basic {login}"
    if kind.lower() == "basic" and login:
        return basic
    parameters = dict(_PARAMETER.findall(text))
    named = parameters.pop("realm", "")
    try:
        realm = httpx.URL(named)
    except httpx.InvalidURL:
        raise MissingError(f"the registry {registry} names a token server that is no URL: {named!r}") from None
    if kind.lower() != "bearer" or not realm.host:
        raise MissingError("the registry needs a login")
    # A login is sent to a server over TLS only, as to the registry itself.
    server = realm.netloc.decode()
    if realm.scheme != "https" and _scheme(server) == "https":
        raise MissingError(f"its token server {server} has no TLS")
    asked = {key: value for key, value in parameters.items() if key in {"service", "scope"}}
    with client.stream("GET", realm, params=asked, headers={"Authorization": basic} if login else {}) as answer:
        content = _read(answer)
        if answer.status_code != 200:
            raise MissingError(f"its token server answers with status {answer.status_code}")
    try:
        record = json.loads(content)
        return f"Bearer {record.get('token') or record['access_token']}"
    except (ValueError, KeyError, AttributeError):
        raise MissingError(f"the token server of {registry} answers without a token") from None


def _scheme(registry: str) -> str:
    """Registries of this computer have no TLS, as for Docker."""
    host = registry.partition(":")[0]
    return "http" if host == "localhost" or host.startswith("127.") else "https"


def _read_login(registry: str) -> str:
    """User and password in base64, as `docker login` writes them; empty without a login."""
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        logins = json.loads((folder / "config.json").read_text())["auths"]
        login = logins.get(_LOGINS.get(registry, registry), {}).get("auth", "")
        base64.b64decode(login, validate=True)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return ""
    return str(login)
