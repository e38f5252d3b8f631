"""Where a control plane keeps what it has: certificates, data, logs and the record of its processes."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rayhelm.closed import Closed
from rayhelm.errors import UsageError

__all__ = ["Home", "Part", "Record", "home"]

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".state" / "control-plane"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Part(Closed):
    """One process of a control plane, as it was started: enough to start it again."""

    name: str
    """`etcd`, `kube-apiserver`, ..."""
    run: str
    """The mark that its processes carry."""
    command: tuple[str, ...]
    environment: dict[str, str] = {}
    """On top of the starter's own."""
    port: int
    """The port on loopback that says whether it is well."""
    pid: int = 0
    created: float = 0.0
    """When the process started, in seconds since 1970; 0 before it ran."""
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
    """What could not be installed here, each with its reason."""
    parts: dict[str, Part] = {}
    complete: bool = False
    """Whether the start came to its end."""

    @property
    def description(self) -> str:
        """In words."""
        ours = "of others, joined, " if self.joined else ""
        operator = f" with KubeRay {self.kuberay}" if self.kuberay else ""
        return f"Kubernetes {self.kubernetes} {ours}at {self.server}{operator}"

    def with_part(self, part: Part) -> "Record":
        return self.model_copy(update={"parts": {**self.parts, part.name: part}})


@dataclass(frozen=True)
class Home:
    """A folder that belongs to one control plane and goes when it goes."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "kubeconfig"

    @property
    def is_joined(self) -> bool:
        """Whether the cluster was joined; without a record, the files show it."""
        if record := self.record():
            return bool(record.joined)
        return self.kubeconfig.is_file() and not self.certificates.exists()

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def data(self) -> Path:
        """Of etcd."""
        return self.folder / "data"

    def log(self, part: str) -> Path:
        return self.folder / "logs" / f"{part}.log"

    def record(self) -> Record | None:
        """What runs here; None where nothing does, or where the record is no longer readable."""
        try:
            return Record.model_validate_json(self._record.read_bytes())
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValidationError):
            return None

    def write(self, record: Record) -> None:
        """Whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._record.with_suffix(".new")
        fresh.write_text(record.model_dump_json(indent=2))
        fresh.replace(self._record)

    def write_kubeconfig(self, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(text)

    def remove(self) -> None:
        """Raises OSError where something of it cannot be removed."""
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
    """Return the folder of the control plane of that name, inside the checkout. Raises UsageError for a name that is
    none."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name: small letters, digits and hyphens, at most 63, as in --name tests-2")
    return Home(STATE / name)
