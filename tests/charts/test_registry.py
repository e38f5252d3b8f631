"""The charts of a release as users get them: pushed to a real OCI registry, signed, pulled and rendered."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from charts.kit import HELMS, parsed
from rayhelm import __version__
from rayhelm.deploy.charts.helm import charts_dir, render
from shared.registry import package_charts, push, serve_registry

PASSPHRASE = "of a test"
CHARTS = sorted(path.parent.name for path in charts_dir().glob("*/Chart.yaml"))
API_SERVER = {"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}}


class Signed(NamedTuple):
    """A registry with the signed charts."""

    registry: str
    keyring: Path
    """Public key of the signer."""
    other_keyring: Path
    """Another public key."""


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    if not shutil.which("gpg"):
        pytest.skip("gpg is not installed")
    home = tmp_path_factory.mktemp("registry")
    (home / "passphrase").write_text(PASSPHRASE)
    secret, public = make_keys(home / "signer")
    _, other = make_keys(home / "other")
    with serve_registry(home) as registry:
        package_charts(
            home / "dist",
            CHART_SIGNING_KEY="releases",
            CHART_KEYRING=str(secret),
            CHART_PASSPHRASE_FILE=str(home / "passphrase"),
        )
        push(HELMS["4"], home / "dist", registry)
        yield Signed(registry, public, other)


def make_keys(home: Path) -> tuple[Path, Path]:
    """Return keyrings with a new secret key and with its public key."""
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--pinentry-mode", "loopback", "--passphrase", PASSPHRASE]
    try:
        run([*gpg, "--quick-generate-key", "releases", "rsa2048", "sign", "never"])
        run([*gpg, "--output", str(home / "secret.gpg"), "--export-secret-keys"])
        run([*gpg, "--output", str(home / "public.gpg"), "--export"])
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    return home / "secret.gpg", home / "public.gpg"


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
