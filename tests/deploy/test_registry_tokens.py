"""Digests from a registry that wants a token of another server, as Docker Hub does."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rayhelm.deploy.images.reference import parse_reference
from rayhelm.deploy.images.registry import read_digests
from rayhelm.errors import MissingError

MANIFEST = b'{"schemaVersion": 2}'
KIND = "application/vnd.oci.image.index.v1+json"
ANSWERS = {
    "page": ("text/html; charset=utf-8", b"<html>log in", {}),
    "old": ("application/vnd.docker.distribution.manifest.v1+prettyjws", b'{"schemaVersion": 1}', {}),
    "untyped": ("", MANIFEST, {}),
    "empty": (KIND, b"", {}),
    "list": (KIND, b"[2]", {}),
    "version": (KIND, b'{"schemaVersion": 1}', {}),
    "nested": (KIND, b"[" * 100_000, {}),
    "other": (KIND, MANIFEST, {"Docker-Content-Digest": f"sha256:{'0a' * 32}"}),
    "large": (KIND, b"0" * (5 << 20), {}),
}


class TokenRegistry(BaseHTTPRequestHandler):
    """Its token is `read`, for one scope and one service."""

    realm, asked = "", list[str]()
    authorized = list[str]()
    """Hosts that got a header Authorization for a manifest."""

    def do_GET(self) -> None:
        host = f"http://{self.headers['Host']}"
        if self.path.startswith("/token"):
            self.asked.append(self.path)
            self._answer(200, b'{"access_token": "read"}')
            return
        if "Authorization" in self.headers:
            self.authorized.append(self.headers["Host"].partition(":")[0])
        tag = self.path.rpartition("/")[2]
        if self.path.startswith("/open/"):
            self._answer(200, MANIFEST, {"Content-Type": KIND})
        elif tag == "moved-early":
            self._answer(302, b"", {"Location": self._find_target("moved-login")})
        elif self.headers.get("Authorization") != "Bearer read":
            wanted = f'Bearer realm="{self.realm or host}/token",service="reg",scope="repository:team/ray:pull"'
            self._answer(401, b"", {"WWW-Authenticate": wanted})
        elif tag.startswith("moved-"):
            self._answer(307, b"", {"Location": self._find_target(tag)})
        else:
            kind, content, headers = ANSWERS.get(tag, (KIND, MANIFEST, {}))
            self._answer(200, content, headers | ({"Content-Type": kind} if kind else {}))

    def _find_target(self, tag: str) -> str:
        other = f"http://localhost:{self.headers['Host'].rpartition(':')[2]}"
        targets = {
            "moved-here": "/v2/team/ray/manifests/1",
            "moved-away": f"{other}/open/1",
            "moved-login": f"{other}/v2/team/ray/manifests/1",
            "moved-plain": "http://other.example/v2/team/ray/manifests/1",
        }
        return targets.get(tag, self.path)

    def _answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(TokenRegistry, "asked", [])
    monkeypatch.setattr(TokenRegistry, "authorized", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), TokenRegistry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_token_of_another_server_reads_the_digest(registry: str) -> None:
    image = parse_reference(f"{registry}/team/ray:1")
    assert read_digests([image]) == {image: f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"}
    assert TokenRegistry.asked == ["/token?service=reg&scope=repository%3Ateam%2Fray%3Apull"]


def test_token_server_without_tls_is_not_asked(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TokenRegistry, "realm", "http://other.example")
    with pytest.raises(MissingError, match=r"its token server other\.example has no TLS"):
        read_digests([parse_reference(f"{registry}/team/ray:1")])


@pytest.mark.parametrize("realm", ["http://[::1", "https://auth.example:port", f"https://{'a' * 64}.example"])
def test_token_server_that_is_no_host_is_refused(registry: str, monkeypatch: pytest.MonkeyPatch, realm: str) -> None:
    monkeypatch.setattr(TokenRegistry, "realm", realm)
    with pytest.raises(MissingError, match=rf"{registry}/team/ray:1: the registry .*(token server|does not answer)"):
        read_digests([parse_reference(f"{registry}/team/ray:1")])


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("page", "Content-Type `text/html`"),
        ("old", r"Content-Type `application/vnd\.docker\.distribution\.manifest\.v1\+prettyjws`"),
        ("untyped", "Content-Type `none`"),
        ("empty", "0 bytes that are not JSON"),
        ("nested", "100000 bytes that are not JSON"),
        ("list", "schemaVersion None"),
        ("version", "schemaVersion 1"),
        ("other", f"and names digest sha256:{'0a' * 32}"),
        ("large", "more than 4 MiB"),
        ("moved-plain", r"redirects to other\.example, without TLS"),
        ("moved-again", "redirects more than 5 times"),
        ("moved-login", "refuses to show it"),
        ("moved-early", "redirects to localhost, which needs a login"),
    ],
)
def test_answer_that_is_no_manifest_is_refused(registry: str, tag: str, message: str) -> None:
    with pytest.raises(MissingError, match=message):
        read_digests([parse_reference(f"{registry}/team/ray:{tag}")])
    assert "localhost" not in TokenRegistry.authorized


@pytest.mark.parametrize(("tag", "authorized"), [("moved-here", 2), ("moved-away", 1)])
def test_redirect_is_followed_and_another_host_gets_no_token(registry: str, tag: str, authorized: int) -> None:
    image = parse_reference(f"{registry}/team/ray:{tag}")
    assert read_digests([image]) == {image: f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"}
    assert TokenRegistry.authorized == ["127.0.0.1"] * authorized
