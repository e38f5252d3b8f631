"""Layers of Python packages: locked packages, and the packages of this checkout."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from rayhelm.errors import RayhelmError
from rayhelm.run.standin.checkpoint import write_checkpoint
from rayhelm.run.standin.families import list_families
from testbed.images.base import PYTHON
from testbed.images.layout import Layout
from testbed.images.tar import Stream
from testbed.tools.checkout import HERE

__all__ = ["SITE_PACKAGES", "make_code", "make_packages", "patterns_of"]

SITE_PACKAGES = f"opt/venv/lib/python{PYTHON}/site-packages"
SET = 'source ci/set-up; [ ! -x .tools/uv/bin/python ] || as_pip_is_set; exec "$@"'
AS_PIP_IS_SET = ("bash", "-c", SET, "as pip is set")
"""Prefix of a uv command that applies pip's mirror and certificate, as in set-up."""
COMMANDS = ("ray", "serve", "vllm", "hf")
MODELS = "models"
"""Folder of the tiny models, one for each family: `/models/LlamaForCausalLM`."""


def patterns_of(recipe: Path) -> list[str]:
    """Return the patterns of files that are not in the image."""
    lines = (line.partition("|")[0].strip() for line in recipe.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def make_packages(
    layout: Layout, tag: str, base: str, locks: Sequence[Path], left_out: Sequence[str], folder: Path
) -> None:
    """Build the image with the locked packages on top of `base` if it is missing."""
    parts = "\n".join([layout.digest(base), *left_out, *(lock.read_text() for lock in locks)])
    if layout.is_made_of(tag, parts):
        return
    checkout = _create_folder(folder)
    options = [word for lock in locks for word in ("--requirement", str(lock))]
    # Hard links instead of copies, if uv's cache is on the same disk.
    _install("--require-hashes", "--compile-bytecode", "--link-mode=hardlink", *options, target=checkout)
    patterns = [f"{SITE_PACKAGES}/{pattern}" for pattern in ("bin", *left_out)]
    layout.make(tag, parts, base=base, layer=Stream(folder, ["./opt"], left_out=patterns))
    shutil.rmtree(folder)


def make_code(layout: Layout, tag: str, base: str, folder: Path) -> None:
    """Build the image with rayhelm, the commands of the packages and the tiny models on top of `base`."""
    checkout, commands = _create_folder(folder), folder / "opt" / "venv" / "bin"
    _install("--no-build-isolation", "--offline", "--compile-bytecode", str(HERE.root / "python"), target=checkout)
    for family in list_families():
        write_checkpoint(family, folder / MODELS)
    _write_commands(commands)
    files = [
        path
        for path in sorted(checkout.rglob("*"))
        if path.is_file() and "bin" not in path.relative_to(checkout).parts[:1]
    ]
    files += sorted(commands.iterdir())
    parts = "\n".join([layout.digest(base), *(f"{path.relative_to(folder)} {_hash_content(path)}" for path in files)])
    if not layout.is_made_of(tag, parts):
        layout.make(
            tag, parts, base=base, layer=Stream(folder, ["./opt", f"./{MODELS}"], left_out=[f"{SITE_PACKAGES}/bin"])
        )
    shutil.rmtree(folder)


def _create_folder(folder: Path) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    checkout = folder / SITE_PACKAGES
    checkout.mkdir(parents=True)
    return checkout


def _install(*arguments: str, target: Path) -> None:
    ours = HERE.store / "uv" / "bin" / "uv"
    uv = str(ours) if ours.exists() else "uv"
    command = [uv, "pip", "install", "--quiet", "--no-deps", f"--python={sys.executable}", f"--python-version={PYTHON}"]
    answer = subprocess.run(
        [*AS_PIP_IS_SET, *command, f"--target={target}", *arguments],
        cwd=HERE.root,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise RayhelmError(f"packages of the image: {answer.stderr.strip()}")


def _write_commands(folder: Path) -> None:
    """Write the console scripts of some packages for the interpreter of the image."""
    folder.mkdir(parents=True)
    for package in distributions():
        for point in package.entry_points.select(group="console_scripts"):
            if point.name in COMMANDS:
                script = folder / point.name
                head = "#!/opt/venv/bin/python3\nimport sys\n"
                script.write_text(f"{head}from {point.module} import {point.attr}\nsys.exit({point.attr}())\n")
                script.chmod(0o755)


def _hash_content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
