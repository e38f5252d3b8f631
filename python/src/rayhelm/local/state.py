"""Where a local endpoint keeps its things: a state folder of the user, and a short-lived folder for Ray's session.

Both, and the mark on its processes, follow from the state folder's path: what is lost or half-written there does not
hide what runs.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rayhelm.closed import Closed

__all__ = ["Endpoint", "Home", "Served", "default_state"]

LONGEST_SOCKET = 107
"""Bytes that a path of a Unix socket may have; Ray's are some 70 longer than its folder."""


class Served(Closed):
    """A model that the endpoint serves."""

    model: str
    task: str
    prefix: str
    """Path in front of `/v1`."""


class Endpoint(Closed):
    """What `up` started."""

    url: str
    """Where clients call it."""
    bare: str
    """Ray Serve itself, behind the gateway; without one the same as `url`."""
    port: int
    dashboard: int
    models: tuple[Served, ...]
    stand_in: bool
    gateway: bool
    """Clients need a key."""
    config: str
    """Digest of what it serves."""
    ready: bool = False


@dataclass(frozen=True)
class Home:
    """The folders of one local endpoint. One state folder holds at most one."""

    state: Path

    @property
    def run(self) -> str:
        """Mark of its processes."""
        return f"up-{self._digest}"

    @property
    def session(self) -> Path:
        """Ray's folder: sockets and logs. Short, because sockets have to be."""
        name = f"rayhelm-{self._digest[:10]}"
        chosen = Path(tempfile.gettempdir(), name)
        return chosen if len(str(chosen)) + 70 <= LONGEST_SOCKET else Path("/tmp", name)

    @property
    def token(self) -> Path:
        return self.state / "token"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def stand_ins(self) -> Path:
        return self.state / "stand-ins"

    @property
    def gateway(self) -> Path:
        """Configuration of the gateway, and the hashes of its keys."""
        return self.state / "gateway"

    @property
    def zygote(self) -> Path:
        return self.session / "zygote"

    @property
    def python(self) -> Path:
        return self.session / "python"

    def read(self) -> Endpoint | None:
        """What was started, when that was written and can be read."""
        try:
            return Endpoint.model_validate(json.loads(self._file.read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError):
            return None

    def write(self, endpoint: Endpoint) -> None:
        waiting = self._file.with_suffix(".new")
        waiting.write_text(endpoint.model_dump_json(indent=2), encoding="utf-8")
        waiting.replace(self._file)

    def prepare(self, token: str) -> None:
        """Makes the folders, for their owner alone, and writes the token."""
        shutil.rmtree(self.session, ignore_errors=True)
        shutil.rmtree(self.logs, ignore_errors=True)
        shutil.rmtree(self.gateway, ignore_errors=True)
        self.session.mkdir(mode=0o700, parents=True)
        for folder in (self.state, self.logs, self.stand_ins):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.token.unlink(missing_ok=True)
        with os.fdopen(os.open(self.token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token)

    def clear(self) -> None:
        """Forgets the endpoint; its logs and its tiny models stay."""
        self.keep_logs()
        self._file.unlink(missing_ok=True)
        self.token.unlink(missing_ok=True)
        shutil.rmtree(self.gateway, ignore_errors=True)
        shutil.rmtree(self.session, ignore_errors=True)

    def keep_logs(self) -> Path:
        """Copies Ray's logs out of its session, which does not last: they are wanted most when it has failed."""
        logs, kept = self.session / "session_latest" / "logs", self.logs / "ray"
        if logs.is_dir():
            shutil.copytree(logs, kept, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        return kept

    @property
    def _file(self) -> Path:
        return self.state / "endpoint.json"

    @property
    def _digest(self) -> str:
        return hashlib.sha256(str(self.state.resolve()).encode()).hexdigest()[:24]


def default_state() -> Path:
    """`$XDG_STATE_HOME/rayhelm`, as the XDG base directories have it."""
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base) / "rayhelm" if base and Path(base).is_absolute() else Path.home() / ".local/state/rayhelm"
