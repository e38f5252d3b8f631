"""The release before this checkout and the next one, made by the scripts of the release workflow, and published to a
registry and a Python index on this computer."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rayhelm import __version__
from shared.chart_keys import PASSPHRASE, make_keys, sign_charts
from shared.python_index import serve_index
from shared.registry import publish, serve_registry
from testbed.tools import program

__all__ = ["BUILT_BY", "COMMIT", "NEXT", "SOURCE", "ReleaseRehearsal", "make_release", "rehearse_releases"]

ROOT = Path(__file__).resolve().parents[3]
NEXT = re.sub(r"\.(\d+)\.\d+$", lambda found: f".{int(found[1]) + 1}.0", __version__)
SOURCE = "https://git.example/rayhelm"
BUILT_BY = f"{SOURCE}/release.yaml"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class ReleaseRehearsal:
    """Both releases, and an empty environment of a user: another home, no checkout, no settings of pip."""

    home: Path
    registry: str
    index: str
    upload: Mapping[str, str]
    keyring: Path
    """Public key that the charts are verified with."""
    key: Path
    """Public key that all else is verified with."""
    sources: Mapping[str, Path]
    """The checkout of each version."""
    files: Mapping[str, Path]
    """What is beside each release, to download."""
    pushed: Mapping[str, list[str]]
    """NAME@DIGEST of the charts of each version."""

    @property
    def user(self) -> Path:
        """Folder in which the commands of the user run."""
        return self.home / "user"

    def attempt(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.user}/venv/bin:{self.home}/bin:/usr/bin:/bin"
        given = {"PATH": path, "HOME": str(self.user), "PIP_CONFIG_FILE": os.devnull, "LANG": "C.UTF-8"}
        given |= {"PIP_INDEX_URL": f"{self.index}/simple/", "PIP_NO_CACHE_DIR": "1", **environment}
        return subprocess.run(command, env=given, cwd=self.user, capture_output=True, text=True, check=False)

    def run(self, *command: str | Path, **environment: str) -> str:
        ended = self.attempt(*command, **environment)
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
        return ended.stdout + ended.stderr

    def install(self, version: str) -> subprocess.CompletedProcess[str]:
        """Install the package by the lock of a release."""
        lock = self.files[version] / f"rayhelm-{version}.lock"
        return self.attempt("pip", "install", "--require-hashes", "--only-binary", ":all:", "--requirement", lock)

    def publish(self, version: str) -> subprocess.CompletedProcess[str]:
        return publish(self.files[version], self.registry, **self.upload)


@contextmanager
def rehearse_releases(home: Path) -> Iterator[ReleaseRehearsal]:
    """Make and publish both releases."""
    (home / "bin").mkdir()
    (home / "user").mkdir()
    for name in ("cosign", "helm", "kubectl"):
        (home / "bin" / name).symlink_to(program(name))
    secret, keyring = make_keys(home / "signer")
    password = {**os.environ, "COSIGN_PASSWORD": PASSPHRASE}
    _run([program("cosign"), "generate-key-pair"], cwd=home, env=password)
    sources = {__version__: _copy_commit(home / "before"), NEXT: _copy_checkout(home / "next")}
    _run([sources[NEXT] / "ci/set-version", NEXT])
    files, pushed = {version: home / f"files-{version}" for version in sources}, {}
    _download_requirements(sources, home / "packages")
    signing = password | {"COSIGN_KEY": str(home / "cosign.key"), "PATH": f"{home}/bin:{os.environ['PATH']}"}
    signing |= {
        "SOURCE": SOURCE,
        "REF": "refs/tags/test",
        "COMMIT": COMMIT,
        "WORKFLOW": BUILT_BY,
        "RUN": f"{BUILT_BY}/1",
    }
    with ExitStack() as stack:
        registry = stack.enter_context(serve_registry(home))
        index = stack.enter_context(serve_index(home / "packages"))
        upload = {"UV_PUBLISH_URL": f"{index}/", "UV_PUBLISH_CHECK_URL": f"{index}/simple/"}
        upload |= {"UV_PUBLISH_USERNAME": "test", "UV_PUBLISH_PASSWORD": "test"}
        for version, source in sources.items():
            make_release(source, version, files[version])
            sign_charts(files[version], secret)
            _run([ROOT / "ci/attest", files[version]], env=signing)
            ended = publish(files[version], registry, **upload)
            assert ended.returncode == 0, ended.stderr
            _run([ROOT / "ci/sign-pushed"], env=signing | {"PLAIN_HTTP": "1"}, text=ended.stdout)
            pushed[version] = ended.stdout.split()
        shutil.rmtree(home / "signer/private-keys-v1.d")
        yield ReleaseRehearsal(home, registry, index, upload, keyring, home / "cosign.pub", sources, files, pushed)


def make_release(source: Path, version: str, folder: Path) -> None:
    """Run the script of a checkout, with its own package in place of the installed one."""
    importable = {**os.environ, "PYTHONPATH": str(source / "python/src")}
    _run([source / "ci/release", f"v{version}", folder], env=importable)


def _copy_commit(folder: Path) -> Path:
    """Copy the commit that set the version of this checkout. Its release is made by the present script."""
    package = "python/src/rayhelm/__init__.py"
    found = _run(["git", "log", "-1", "--format=%H", f'-S__version__ = "{__version__}"', "--", package], cwd=ROOT)
    assert found.strip(), "the history has no commit that set the version"
    archive = folder.with_suffix(".tar")
    _run(["git", "archive", f"--output={archive}", found.strip()], cwd=ROOT)
    _unpack(archive, folder)
    for name in ("release", "stage"):
        shutil.copy(ROOT / "ci" / name, folder / "ci" / name)
    return folder


def _copy_checkout(folder: Path) -> Path:
    archive = folder.with_suffix(".tar")
    names = _run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT)
    kept = "\0".join(name for name in names.split("\0") if name and (ROOT / name).exists())
    _run(["tar", "--create", f"--file={archive}", "--null", "--files-from=-"], cwd=ROOT, text=kept)
    _unpack(archive, folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir()
    _run(["tar", "--extract", f"--file={archive}", f"--directory={folder}"])
    archive.unlink()
    for name in (".venv", ".tools"):
        (folder / name).symlink_to(ROOT / name)


def _download_requirements(sources: Mapping[str, Path], packages: Path) -> None:
    """What else the index has: the packages of both locks, from where this computer gets packages."""
    for source in sources.values():
        options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--dest", packages]
        lock = source / "requirements/core.txt"
        _run([sys.executable, "-m", "pip", "download", *options, "--requirement", lock])


def _run(
    command: list[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, text: str = ""
) -> str:
    ended = subprocess.run(command, cwd=cwd, env=env, input=text, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout
