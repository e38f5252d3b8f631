"""An OCI layout: a folder with images by tag, which share their layers."""

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rayhelm.errors import RayhelmError
from testbed.images.tar import Stream
from testbed.tools import program
from testbed.tools.checkout import HERE

__all__ = ["LAYOUTS", "Layout"]

LAYOUTS = HERE.root / ".cache" / "images"


@dataclass(frozen=True)
class Layout:
    """The images of one name: `rayhelm.local/<name>:<tag>`."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def reference(self, tag: str) -> str:
        return f"rayhelm.local/{self.name}:{tag}"

    def tags(self) -> list[str]:
        return list(self._manifests()) if (self.folder / "index.json").exists() else []

    def is_made_of(self, tag: str, parts: str) -> bool:
        """Return whether the tag exists and was built from exactly these parts."""
        note = self._note(tag)
        return tag in self.tags() and note.is_file() and note.read_text() == _hash_parts(parts)

    def make(
        self, tag: str, parts: str, *, base: str = "", layer: Stream | None = None, config: Sequence[str] = ()
    ) -> None:
        """Build an image on top of the layers of `base`. `config`: options of `umoci config`. `parts`: text that
        identifies the inputs; the image is built again when it changes."""
        self._note(tag).unlink(missing_ok=True)
        if not (self.folder / "oci-layout").exists():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self._umoci("init", f"--layout={self.folder}")
        image = f"--image={self.folder}:{tag}"
        if base:
            self._umoci("tag", f"--image={self.folder}:{base}", tag)
        else:
            self._umoci("new", image)
        if layer:
            with layer:
                # No compression: it takes minutes, and the image stays on this computer.
                self._umoci("raw", "add-layer", image, "--compress=none", "/dev/stdin", stdin=layer.output)
        if config:
            self._umoci("config", image, *config)
        self._umoci("gc", f"--layout={self.folder}")
        self._note(tag).write_text(_hash_parts(parts))

    def digest(self, tag: str) -> str:
        """Return the digest of an image's manifest."""
        return str(self._manifests()[tag]["digest"])

    def blobs(self, tag: str) -> list[str]:
        """Return the digests of the manifest, the configuration and the layers of an image."""
        manifest = self._manifests()[tag]["digest"]
        content = json.loads(self._blob(manifest).read_bytes())
        return [manifest, content["config"]["digest"], *(layer["digest"] for layer in content["layers"])]

    def size(self, tag: str) -> int:
        """Return the size of an image, bytes."""
        return sum(self._blob(digest).stat().st_size for digest in self.blobs(tag))

    def export(self, tag: str, to: IO[bytes], *, without: frozenset[str] = frozenset()) -> None:
        """Write an archive of one image to a stream. `without`: digests that the reader already has."""
        manifest = self._manifests()[tag]
        # containerd reads the name of the image from this annotation; a tag alone is not a name.
        named = {**manifest["annotations"], "io.containerd.image.name": self.reference(tag)}
        index = json.dumps({"schemaVersion": 2, "manifests": [{**manifest, "annotations": named}]}).encode()
        with tarfile.open(fileobj=to, mode="w|") as tar:
            tar.add(self.folder / "oci-layout", "oci-layout")
            for digest in self.blobs(tag):
                if digest not in without:
                    tar.add(self._blob(digest), f"blobs/{digest.replace(':', '/')}")
            entry = tarfile.TarInfo("index.json")
            entry.size = len(index)
            tar.addfile(entry, io.BytesIO(index))

    def _manifests(self) -> dict[str, dict[str, Any]]:
        index = json.loads((self.folder / "index.json").read_bytes())
        return {item["annotations"]["org.opencontainers.image.ref.name"]: item for item in index["manifests"]}

    def _blob(self, digest: str) -> Path:
        return self.folder / "blobs" / digest.replace(":", "/")

    def _note(self, tag: str) -> Path:
        return self.folder.with_name(f".{self.name}-{tag}.parts")

    def _umoci(self, *arguments: str, stdin: IO[bytes] | None = None) -> None:
        answer = subprocess.run(
            [program("umoci"), *arguments],
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode:
            raise RayhelmError(f"umoci {' '.join(arguments)}: {(answer.stderr or answer.stdout).strip()}")


def _hash_parts(parts: str) -> str:
    return hashlib.sha256(parts.encode()).hexdigest()
