"""`ci/sign-charts` signs packages with gpg alone, in the form that helm verifies."""

import shutil
import subprocess
from pathlib import Path

import pytest

from charts.kit import HELMS
from rayhelm import __version__
from rayhelm.deploy.charts.helm import charts_dir
from shared.chart_keys import make_keys, sign_charts


def verify(helm: str, package: Path, keyring: Path) -> subprocess.CompletedProcess[str]:
    command = [HELMS[helm], "verify", package, "--keyring", keyring]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package and its signature, the keyring of the signer, and another one."""
    if not shutil.which("gpg"):
        pytest.skip("gpg is not installed")
    home = tmp_path_factory.mktemp("signed")
    for name in ("signer", "other"):
        make_keys(home / name)
    command = [HELMS["4"], "package", charts_dir() / "ray-service", "-d", home]
    subprocess.run(command, check=True, capture_output=True)
    sign_charts(home, home / "signer/secret.gpg")
    return home


@pytest.mark.parametrize("helm", ["3", "4"])
def test_helm_accepts_the_signature(helm: str, home: Path) -> None:
    ended = verify(helm, home / f"ray-service-{__version__}.tgz", home / "signer/public.gpg")
    assert ended.returncode == 0, ended.stderr


def test_helm_refuses_the_signature_of_another_key(home: Path) -> None:
    ended = verify("4", home / f"ray-service-{__version__}.tgz", home / "other/public.gpg")
    assert (ended.returncode, "signature made by unknown entity" in ended.stderr) == (1, True), ended.stderr


def test_helm_refuses_a_changed_package(home: Path, tmp_path: Path) -> None:
    package = tmp_path / f"ray-service-{__version__}.tgz"
    shutil.copy(home / f"{package.name}.prov", tmp_path)
    package.write_bytes((home / package.name).read_bytes() + b"x")
    ended = verify("4", package, home / "signer/public.gpg")
    assert (ended.returncode, "sha256 sum does not match" in ended.stderr) == (1, True), ended.stderr
