"""The folders of a local endpoint: a state folder of the user, and a short-lived folder for Ray's session.

The session folder and the mark of the processes are derived from the path of the state folder, so `down` finds what
runs even if the files in the state folder are lost or damaged.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rayhelm.errors import Fix, MissingError
from rayhelm.facts.closed import Closed

__all__ = ["EndpointModel", "EndpointState", "LocalEndpoint", "default_folder"]

MAX_SOCKET_PATH = 107
"""Longest path of a Unix socket, in bytes. The paths of Ray's sockets are about 70 longer than its folder."""


class EndpointModel(Closed):
    model: str
    task: str
    prefix: str
    """Path before `/v1`."""


class LocalEndpoint(Closed):
    """What `up` started."""

    url: str
    """URL for clients."""
    serve_url: str
    """URL of Ray Serve behind the gateway; the same as `url` without a gateway."""
    port: int
    dashboard: int
    """Port of Ray's dashboard."""
    models: tuple[EndpointModel, ...]
    stand_in: bool
    gateway: bool
    """Clients need an API key."""
    prometheus: str = ""
    """URL of Prometheus; empty without `--metrics`."""
    config: str
    """Digest of the configuration."""
    ready: bool = False


@dataclass(frozen=True)
class EndpointState:
    """Files and folders of one local endpoint. A state folder has at most one endpoint."""

    folder: Path

    @property
    def run(self) -> str:
        """Mark of the endpoint's processes."""
        return f"up-{self._digest}"

    @property
    def session(self) -> Path:
        """Ray's folder for sockets and logs. The path is short because socket paths have to be."""
        name = f"rayhelm-{self._digest[:10]}"
        chosen = Path(tempfile.gettempdir(), name)
        return chosen if len(str(chosen)) + 70 <= MAX_SOCKET_PATH else Path("/tmp", name)

    @property
    def token(self) -> Path:
        return self.folder / "token"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def stand_ins(self) -> Path:
        return self.folder / "stand-ins"

    @property
    def gateway(self) -> Path:
        """Configuration of the gateway, and the hashes of its keys."""
        return self.folder / "gateway"

    @property
    def prometheus(self) -> Path:
        """Configuration and data of Prometheus."""
        return self.folder / "prometheus"

    @property
    def fork_socket(self) -> Path:
        """Socket of the fork server."""
        return self.session / "fork-server"

    @property
    def python(self) -> Path:
        """Program that asks the fork server in place of starting Python."""
        return self.session / "python"

    def read(self) -> LocalEndpoint | None:
        """Return the endpoint that was written; None if there is none or the file is damaged."""
        try:
            return LocalEndpoint.model_validate(json.loads(self._file.read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError):
            return None

    def write(self, endpoint: LocalEndpoint) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(endpoint.model_dump_json(indent=2), encoding="utf-8")
        new.replace(self._file)

    def prepare(self, token: str) -> None:
        """Create the folders with access for their owner only, and write the token. Raises MissingError if another user
        has the path of the session."""
        shutil.rmtree(self.session, ignore_errors=True)
        shutil.rmtree(self.logs, ignore_errors=True)
        shutil.rmtree(self.gateway, ignore_errors=True)
        shutil.rmtree(self.prometheus, ignore_errors=True)
        try:
            self.session.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            what = f"{self.session} is a link or belongs to another user, and Ray needs a folder of yours there"
            fix = Fix(
                command='TMPDIR="$XDG_RUNTIME_DIR" rayhelm up FLEET', why="or remove it; `down` needs the same TMPDIR"
            )
            raise MissingError(what, fix) from None
        for folder in (self.folder, self.logs, self.stand_ins):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.token.unlink(missing_ok=True)
        with os.fdopen(os.open(self.token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token)

    def clear(self) -> None:
        """Remove the endpoint's files; keep its logs and its tiny models."""
        self.keep_logs()
        self._file.unlink(missing_ok=True)
        self.token.unlink(missing_ok=True)
        shutil.rmtree(self.gateway, ignore_errors=True)
        shutil.rmtree(self.prometheus, ignore_errors=True)
        shutil.rmtree(self.session, ignore_errors=True)

    def keep_logs(self) -> Path:
        """Copy Ray's logs out of its session folder, which is removed, and return the copy."""
        logs, kept = self.session / "session_latest" / "logs", self.logs / "ray"
        if logs.is_dir():
            shutil.copytree(logs, kept, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        return kept

    @property
    def _file(self) -> Path:
        return self.folder / "endpoint.json"

    @property
    def _digest(self) -> str:
        return hashlib.sha256(str(self.folder.resolve()).encode()).hexdigest()[:24]


def default_folder() -> Path:
    """Return `$XDG_STATE_HOME/rayhelm`, with the default of the XDG Base Directory Specification."""
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base) / "rayhelm" if base and Path(base).is_absolute() else Path.home() / ".local/state/rayhelm"
