"""A container of Azure Blob Storage on loopback: Microsoft's emulator where `AZURITE` names its program `azurite-blob`,
else a stand-in with the few requests that a download sends, which checks signatures as the emulator does."""

import base64
import hmac
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

from rayhelm.processes import create_run_id, start, stop_run
from shared.object_store import wait_until_listening
from shared.ports import reserve_port

__all__ = ["ACCOUNT", "CONTAINER", "serve_container", "sign", "upload_model"]

ACCOUNT, CONTAINER = "acmestore", "models"
KEY = base64.b64encode(b"not a real key").decode()
VERSION = "2021-12-02"
FIELDS = ("sp", "st", "se", "resource", "si", "sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce")
"""Lines of the text that is signed, before the last two, which are empty here
(https://learn.microsoft.com/rest/api/storageservices/create-service-sas)."""


def sign(*, permissions: str = "r", valid: timedelta = timedelta(hours=1), key: str = KEY) -> str:
    """Return a SAS token for the container."""
    end = (datetime.now(UTC) + valid).strftime("%Y-%m-%dT%H:%M:%SZ")
    given = {"sp": permissions, "se": end, "sv": VERSION, "sr": "c"}
    return urlencode({**given, "sig": _sign(given, key)})


def _sign(given: dict[str, str], key: str) -> str:
    lines = {**given, "resource": f"/blob/{ACCOUNT}/{CONTAINER}"}
    text = "\n".join([*(lines.get(field, "") for field in FIELDS), "", ""])
    return base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), "sha256")).decode()


@contextmanager
def serve_container(home: Path) -> Iterator[int]:
    """Yield the port of a store with the empty container `models`."""
    if program := os.environ.get("AZURITE"):
        with _emulate(program, home) as port:
            yield port
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), _StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _emulate(program: str, home: Path) -> Iterator[int]:
    from pyarrow import fs

    run = create_run_id()
    with reserve_port() as port:
        command = [program, f"--blobPort={port}", f"--location={home}", "--silent", "--skipApiVersionCheck"]
        try:
            process = start(
                command, run=run, log=home / "log", env=os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
            )
            wait_until_listening(port, process)
            address = {"blob_storage_authority": f"127.0.0.1:{port}", "blob_storage_scheme": "http"}
            fs.AzureFileSystem(ACCOUNT, account_key=KEY, **address).create_dir(CONTAINER)
            yield port
        finally:
            stop_run(run)


def upload_model(port: int, prefix: str, files: dict[str, bytes]) -> str:
    """Upload files and their `SHA256SUMS`; return the sha256 of it."""
    lines = "".join(f"{sha256(content).hexdigest()}  ./{name}\n" for name, content in files.items()).encode()
    for name, content in {**files, "SHA256SUMS": lines}.items():
        address = f"http://127.0.0.1:{port}/{ACCOUNT}/{CONTAINER}/{prefix}/{quote(name)}?{sign(permissions='cw')}"
        urlopen(Request(address, method="PUT", data=content, headers={"x-ms-blob-type": "BlockBlob"})).close()
    return sha256(lines).hexdigest()


class _StandIn(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    blobs: dict[str, bytes] = {}

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self._is_allowed("c"):
            self.blobs[self._name] = content
            self._answer(201)

    def do_HEAD(self) -> None:
        self._read()

    def do_GET(self) -> None:
        self._read()

    @property
    def _name(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _read(self) -> None:
        if not self._is_allowed("r"):
            return
        content = self.blobs.get(self._name)
        if content is None:
            self._answer(404, code="BlobNotFound")
        elif given := self.headers["Range"]:
            first, _, last = given.removeprefix("bytes=").partition("-")
            self._answer(206, content[int(first) : int(last) + 1])
        else:
            self._answer(200, content)

    def _is_allowed(self, permission: str) -> bool:
        given = dict(parse_qsl(urlsplit(self.path).query))
        signature, now = given.pop("sig", ""), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if given.get("sp") and _sign(given, KEY) == signature and given.get("se", "") > now:
            if permission in given["sp"]:
                return True
            self._answer(403, code="AuthorizationPermissionMismatch")
            return False
        self._answer(403, code="AuthenticationFailed")
        return False

    def _answer(self, status: int, content: bytes = b"", code: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if code:
            self.send_header("x-ms-error-code", code)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""
