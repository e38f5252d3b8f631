"""The folder of a control plane: certificates, data, logs and the record of its processes."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rayhelm.errors import UsageError
from rayhelm.facts.closed import Closed

__all__ = ["Home", "Part", "Record", "home"]

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".state" / "control-plane"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Part(Closed):
    """One process of a control plane, with all settings to start it again."""

    name: str
    """`etcd`, `kube-apiserver`, ..."""
    run: str
    """Mark of its processes."""
    command: tuple[str, ...]
    environment: dict[str, str] = {}
    """Variables in addition to the environment of `up`."""
    port: int
    """Health port on loopback."""
    pid: int = 0
    created: float = 0.0
    """Start of the process, in seconds since 1970; 0 before the first start."""
    version: str = ""


class Record(Closed):
    """What runs here."""

    kubernetes: str
    """Version of the API server."""
    kuberay: str
    """Version of the operator; empty without one."""
    server: str
    """URL of the API server."""
    joined: str = ""
    """UID of a joined cluster; empty for one that was started here."""
    stand_in: str = ""
    """URL of the Ray stand-in; empty without one."""
    left_out: tuple[str, ...] = ()
    """CRDs that were not installed, each with the reason."""
    parts: dict[str, Part] = {}
    complete: bool = False
    """The start is complete."""

    @property
    def description(self) -> str:
        """One line for messages."""
        ours = "of an existing cluster " if self.joined else ""
        operator = f" with KubeRay {self.kuberay}" if self.kuberay else ""
        return f"Kubernetes {self.kubernetes} {ours}at {self.server}{operator}"

    def with_part(self, part: Part) -> "Record":
        return self.model_copy(update={"parts": {**self.parts, part.name: part}})


@dataclass(frozen=True)
class Home:
    """The folder of one control plane, which is removed with it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.folder / "kubeconfig"

    @property
    def is_joined(self) -> bool:
        """The cluster was joined. Without a record, the files show it."""
        if record := self.record():
            return bool(record.joined)
        return self.kubeconfig.is_file() and not self.certificates.exists()

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def data(self) -> Path:
        """Data folder of etcd."""
        return self.folder / "data"

    def log(self, part: str) -> Path:
        return self.folder / "logs" / f"{part}.log"

    def record(self) -> Record | None:
        """Return the record; None if there is none or it cannot be read."""
        try:
            return Record.model_validate_json(self._record.read_bytes())
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValidationError):
            return None

    def write(self, record: Record) -> None:
        """Write the record atomically."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._record.with_suffix(".new")
        fresh.write_text(record.model_dump_json(indent=2))
        fresh.replace(self._record)

    def write_kubeconfig(self, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(text)

    def remove(self) -> None:
        """Remove the folder. Raises OSError if a file cannot be removed."""
        if self.folder.is_symlink() or self.folder.is_file():
            self.folder.unlink()
        elif self.folder.exists():
            shutil.rmtree(self.folder)

    def other_names(self) -> list[str]:
        """Return the names of the other control planes of this checkout."""
        folders = self.folder.parent.glob("*/") if self.folder.parent.is_dir() else ()
        return sorted(folder.name for folder in folders if NAME.fullmatch(folder.name) and folder.name != self.name)

    @property
    def _record(self) -> Path:
        return self.folder / "record.json"


def home(name: str = "default") -> Home:
    """Return the folder of a control plane in the checkout. Raises UsageError for an invalid name."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid name: at most 63 lowercase letters, digits and hyphens")
    return Home(STATE / name)
