"""Fetch the npm packages of ci/npm/packages.yaml into .tools/npm, with their checksums. Does nothing without npm.

A package gets its folder only after its checksum was verified, so an interrupted fetch leaves no partial package.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "ci/npm/packages.yaml"
HOME = ROOT / ".tools/npm"


@dataclass(frozen=True)
class Package:
    """A package at one version."""

    name: str
    version: str
    integrity: str

    @property
    def folder(self) -> Path:
        return HOME / f"{self.name.lstrip('@').replace('/', '-')}-{self.version}"


def packages() -> list[Package]:
    return [Package(**row) for row in yaml.safe_load(PACKAGES.read_text())]


def main() -> int:
    todo = [package for package in packages() if not package.folder.is_dir()]
    if not todo:
        return 0
    if not shutil.which("npm"):
        print("    npm is not installed: the types of Grafana are not fetched, and their test is skipped")
        return 0
    print("==> " + ", ".join(f"{package.name} {package.version}" for package in todo), flush=True)
    for package in todo:
        fetch(package)
    return 0


def fetch(package: Package) -> None:
    """Download, verify and unpack one package."""
    HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME, prefix=".fetch-") as folder:
        command = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.exit(f"npm pack {package.name}@{package.version} failed:\n{ended.stderr.strip()}")
        (archive,) = Path(folder).glob("*.tgz")
        if (found := integrity(archive)) != package.integrity:
            sys.exit(f"{package.name} {package.version} has {found}, not {package.integrity}")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (Path(folder) / "package").rename(package.folder)


def integrity(archive: Path) -> str:
    with archive.open("rb") as file:
        return "sha512-" + base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()


if __name__ == "__main__":
    sys.exit(main())
