"""The charts of a release as users get them: pushed to a real OCI registry, signed, pulled and rendered."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import yaml

from charts.kit import HELMS, parsed
from rayhelm import __version__
from rayhelm.deploy.charts.helm import charts_dir, render
from shared.chart_keys import make_keys, sign_charts
from shared.python_index import serve_index
from shared.registry import package_charts, publish, serve_registry

CHARTS = sorted(path.parent.name for path in charts_dir().glob("*/Chart.yaml"))
API_SERVER = {"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}}


class Signed(NamedTuple):
    """A registry with the signed charts."""

    registry: str
    files: Path
    """Folder of the release."""
    keyring: Path
    """Public key of the signer."""
    other_keyring: Path
    """Another public key."""


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    if not shutil.which("gpg"):
        pytest.skip("gpg is not installed")
    home = tmp_path_factory.mktemp("registry")
    secret, public = make_keys(home / "signer")
    _, other = make_keys(home / "other")
    with serve_registry(home) as registry:
        package_charts(home / "dist")
        sign_charts(home / "dist", secret)
        ended = publish(home / "dist", registry)
        assert ended.returncode == 0, ended.stderr
        yield Signed(registry, home / "dist", public, other)


def run(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def pull(helm: str, signed: Signed, chart: str, keyring: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    source = [f"oci://{signed.registry}/charts/{chart}", "--version", __version__, "--plain-http"]
    command = [HELMS[helm], "pull", *source, "--verify", "--keyring", keyring, "--destination", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("chart", CHARTS)
def test_pulled_chart_has_a_valid_signature(chart: str, helm: str, signed: Signed, tmp_path: Path) -> None:
    ended = pull(helm, signed, chart, signed.keyring, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert f"{chart}-{__version__}.tgz" in {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("helm", HELMS)
def test_chart_signed_by_another_key_is_refused(helm: str, signed: Signed, tmp_path: Path) -> None:
    ended = pull(helm, signed, "gateway", signed.other_keyring, tmp_path)
    assert (ended.returncode, "signature made by unknown entity" in ended.stderr) == (1, True), ended.stderr


@pytest.mark.parametrize("helm", HELMS)
def test_changed_package_is_refused(helm: str, signed: Signed, tmp_path: Path) -> None:
    assert pull("4", signed, "gateway", signed.keyring, tmp_path).returncode == 0
    package = tmp_path / f"gateway-{__version__}.tgz"
    package.write_bytes(package.read_bytes() + b"\0")
    command = [HELMS[helm], "verify", package, "--keyring", signed.keyring]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, "sha256 sum does not match" in ended.stderr) == (1, True), ended.stderr


@pytest.mark.parametrize("helm", HELMS)
def test_quickstart_from_the_registry_is_both_charts_in_one_release(helm: str, signed: Signed, tmp_path: Path) -> None:
    values = yaml.safe_load((charts_dir() / "quickstart/examples/llama-8b.yaml").read_text())
    values["ray-service"]["networkPolicy"] |= API_SERVER["networkPolicy"]
    (tmp_path / "values.json").write_text(json.dumps(values) + "\n")
    source = [f"oci://{signed.registry}/charts/quickstart", f"--version={__version__}", "--plain-http"]
    whole = run([str(HELMS[helm]), "template", "llm", *source, "-n", "llm", f"--values={tmp_path}/values.json"])
    # Helm 4 writes what it pulled before the objects.
    objects = [item for item in parsed(whole) if "kind" in item]
    parts = [parsed(render(chart, "llm", "llm", part, helm=HELMS[helm])) for chart, part in values.items()]
    assert sorted(objects, key=str) == sorted((item for part in parts for item in part), key=str)


@pytest.mark.parametrize(("key", "refusal"), [("gatewey", "gatewey"), ("global", "api-server-cidrs")])
def test_quickstart_refuses_what_its_charts_refuse(key: str, refusal: str, signed: Signed, tmp_path: Path) -> None:
    values = yaml.safe_load((charts_dir() / "quickstart/examples/llama-8b.yaml").read_text()) | {key: {}}
    values["ray-service"]["autoscaler"] = {"enabled": True}
    values["ray-service"]["workerGroups"]["gpu"]["maxReplicas"] = 2
    (tmp_path / "values.json").write_text(json.dumps(values) + "\n")
    source = [f"oci://{signed.registry}/charts/quickstart", f"--version={__version__}", "--plain-http"]
    command = [HELMS["4"], "template", "llm", *source, f"--values={tmp_path}/values.json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, refusal in ended.stderr) == (1, True), ended.stderr


def copy_release(signed: Signed, folder: Path, names: str, *, change: str = "") -> Path:
    """Copy files of the release, with their checksums. One of them gets other content."""
    folder.mkdir()
    for file in sorted(signed.files.glob(names)):
        (folder / file.name).write_bytes(file.read_bytes() + (b"\0" if change and file.match(change) else b""))
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in folder.iterdir()]
    (folder / "SHA256SUMS").write_text("".join(lines))
    return folder


def test_publish_accepts_the_same_files_again(signed: Signed) -> None:
    first, second = (publish(signed.files, signed.registry) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert first.stdout == second.stdout
    names = [line.partition("@sha256:")[0] for line in second.stdout.splitlines()]
    assert names == [f"{signed.registry}/charts/{chart}" for chart in CHARTS]


def test_publish_refuses_another_chart_of_a_version(signed: Signed, tmp_path: Path) -> None:
    with serve_registry(tmp_path) as registry:
        assert publish(copy_release(signed, tmp_path / "first", "tenant-*.tgz"), registry).returncode == 0
        ended = publish(copy_release(signed, tmp_path / "other", "*.tgz", change="tenant-*.tgz"), registry)
        found = httpx.get(f"http://{registry}/v2/_catalog", trust_env=False).json()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"charts/tenant has version {__version__} with other content" in ended.stderr
    assert found == {"repositories": ["charts/tenant"]}, "nothing was pushed"


def test_publish_refuses_another_wheel_of_a_version(signed: Signed, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    with serve_registry(tmp_path) as registry, serve_index(packages) as index:
        upload = {"UV_PUBLISH_URL": f"{index}/", "UV_PUBLISH_CHECK_URL": f"{index}/simple/"}
        upload |= {"UV_PUBLISH_USERNAME": "test", "UV_PUBLISH_PASSWORD": "test"}
        for name in ("first", "again"):
            ended = publish(copy_release(signed, tmp_path / name, "*.whl"), registry, **upload)
            assert ended.returncode == 0, ended.stderr
        ended = publish(copy_release(signed, tmp_path / "other", "*.*", change="*.whl"), registry, **upload)
        found = httpx.get(f"http://{registry}/v2/_catalog", trust_env=False).json()
    assert (ended.returncode, "raise the version" in ended.stderr) == (1, True), ended.stderr
    assert found == {"repositories": []}, "nothing was pushed"
    (wheel,) = packages.iterdir()
    assert wheel.read_bytes() == (signed.files / wheel.name).read_bytes()


def test_publish_names_the_registry_that_needs_a_login(signed: Signed, tmp_path: Path) -> None:
    with serve_registry(tmp_path, login=True) as registry:
        ended = publish(signed.files, registry)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"fix: helm registry login {registry}" in ended.stderr


def test_publish_refuses_a_file_without_its_checksum(signed: Signed, tmp_path: Path) -> None:
    folder = copy_release(signed, tmp_path / "files", "tenant-*.tgz")
    (folder / f"tenant-{__version__}.tgz").write_bytes(b"another")
    ended = publish(folder, signed.registry)
    assert (ended.returncode, "FAILED" in ended.stdout + ended.stderr) == (1, True)
