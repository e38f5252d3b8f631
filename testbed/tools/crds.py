"""Custom resource definitions from Go modules: compare the archive's checksum, and keep only the CRDs."""

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rayhelm.errors import MissingError, UsageError
from testbed.tools.catalog import catalog, module
from testbed.tools.checkout import HERE, Checkout
from testbed.tools.diagnosis import diagnosis
from testbed.tools.toolchain import environment, go_for

__all__ = ["FOLDER", "Source", "bundles", "crd_files", "fetch", "is_fetched", "source"]

FOLDER = "RAYHELM_CRDS"
"""Variable with the folder of CRDs that no Go module has: NAME-VERSION/*.yaml."""
OLDEST_GO = "1.21"


@dataclass(frozen=True)
class Source:
    """A bundle of CRDs, and its Go module."""

    name: str
    module: str
    version: str
    sum: str
    folder: str

    def home(self, checkout: Checkout) -> Path:
        return checkout.store / "crds" / f"{self.name}-{self.version}"


def crd_files(bundle: str, version: str = "", checkout: Checkout = HERE) -> list[Path]:
    """Return the CRDs of a bundle, one file each, at the pinned version or at `version`.

    Raises MissingError with the command that fetches them."""
    pinned = source(bundle, checkout)
    if version in ("", pinned.version):
        if not is_fetched(pinned, checkout):
            raise MissingError(f"the CRDs of {bundle} {pinned.version} are missing", "make tools")
        return sorted(pinned.home(checkout).glob("*.yaml"))
    named = checkout.env.get(FOLDER)
    if not named:
        raise MissingError(
            f"no available Go module has the CRDs of {bundle} {version}, and {FOLDER} is not set",
            f"{FOLDER}=FOLDER    # with {bundle}-{version}/*.yaml",
        )
    files = sorted(Path(named, f"{bundle}-{version}").glob("*.yaml"))
    if not files:
        raise MissingError(
            f"{FOLDER}={named} has no {bundle}-{version}/*.yaml", f"put {bundle}'s CRDs there, or unset {FOLDER}"
        )
    return files


def source(bundle: str, checkout: Checkout) -> Source:
    """Return a bundle by name. Raises UsageError for an unknown one."""
    known = catalog(checkout).crds
    if bundle not in known:
        raise UsageError(f"unknown CRDs {bundle}; known: {', '.join(known)}")
    entry = known[bundle]
    if not entry.tool:
        return Source(bundle, entry.module, entry.version, entry.sum, entry.folder)
    pinned = module(entry.tool, checkout)
    return Source(bundle, pinned.recipe.module, pinned.version, pinned.sum, entry.folder)


def bundles(checkout: Checkout) -> list[Source]:
    """Return every bundle, in the order of tools.yaml."""
    return [source(name, checkout) for name in catalog(checkout).crds]


def is_fetched(bundle: Source, checkout: Checkout) -> bool:
    note = bundle.home(checkout) / ".sum"
    return note.is_file() and note.read_text() == bundle.sum


def fetch(bundle: Source, checkout: Checkout) -> None:
    """Fetch a bundle into .tools. The lock must be held. Raises MissingError."""
    home = bundle.home(checkout)
    home.parent.mkdir(parents=True, exist_ok=True)
    for leftover in home.parent.glob(".fetching-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(dir=home.parent, prefix=".fetching-"))
    try:
        _copy(_download(bundle, fresh, checkout) / bundle.folder, fresh, bundle)
        (fresh / ".sum").write_text(bundle.sum)
        shutil.rmtree(home, ignore_errors=True)
        fresh.rename(home)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _download(bundle: Source, outside: Path, checkout: Checkout) -> Path:
    """Download the module, and return its folder in Go's cache."""
    # In a separate module, so that a go.mod of a parent folder does not apply. GOSUMDB is off: the sum is compared
    # below.
    (outside / "go.mod").write_text("module outside\n")
    command = [str(go_for(OLDEST_GO, checkout)), "mod", "download", "-json", f"{bundle.module}@v{bundle.version}"]
    ended = subprocess.run(
        command,
        cwd=outside,
        env=environment(checkout) | {"GOSUMDB": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    (outside / "go.mod").unlink()
    answer = json.loads(ended.stdout or "{}")
    if ended.returncode or answer.get("Error"):
        said = answer.get("Error") or ended.stderr.strip()
        cause, fix = diagnosis(said)
        raise MissingError(f"{said}\nthe CRDs of {bundle.name} {bundle.version} could not be fetched: {cause}", fix)
    if answer["Sum"] != bundle.sum:
        raise MissingError(
            f"{bundle.module} v{bundle.version} has the sum {answer['Sum']}, not {bundle.sum}: it differs from "
            "the one that ci/tools pins, and was not used",
            "ask the operator of your Go module proxy, or set GOPROXY to another one; `go clean -modcache` forgets it",
        )
    return Path(answer["Dir"])


def _copy(folder: Path, into: Path, bundle: Source) -> None:
    files = [path for path in sorted(folder.glob("*.yaml")) if _is_crd(path)]
    if not files:
        raise MissingError(
            f"{bundle.module} v{bundle.version} has no CRDs in {bundle.folder}",
            "find the folder of the CRDs, and set it in ci/tools/tools.yaml",
        )
    for path in files:
        shutil.copyfile(path, into / path.name)


def _is_crd(path: Path) -> bool:
    # A regular expression, because PyYAML cannot parse the `=` in some CRDs.
    return re.search(r"^kind: CustomResourceDefinition\s*$", path.read_text(), re.MULTILINE) is not None
