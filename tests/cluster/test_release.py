"""Users install, verify and upgrade the next release from a registry and a Python index, without a checkout. `make
verify-release` builds cosign and runs this."""

import base64
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.kit.cluster import Cluster
from cluster.kit.fleets import Fleet
from cluster.kit.references import stand_for
from cluster.kit.release_rehearsal import BUILT_BY, COMMIT, NEXT, ReleaseRehearsal, make_release, rehearse_releases
from cluster.kit.wait import eventually
from rayhelm import __version__
from rayhelm.errors import MissingError
from shared.registry import publish
from testbed.tools import program

OFFLINE = "--insecure-ignore-tlog=true"
"""A key signed, and nothing is in a public log."""


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReleaseRehearsal]:
    if not shutil.which("gpg"):
        pytest.skip("gpg is not installed")
    try:
        program("cosign")
    except MissingError:
        pytest.skip("cosign is not built: make verify-release")
    with rehearse_releases(tmp_path_factory.mktemp("release")) as made:
        made.run(Path(sys.base_prefix) / "bin/python3", "-m", "venv", "venv")
        yield made


def verify_blob(releases: ReleaseRehearsal, file: Path, key: Path) -> str:
    """Verify the signature beside a file; return what cosign printed last."""
    bundle = f"--bundle={file}.sigstore.json"
    ended = releases.attempt("cosign", "verify-blob", f"--key={key}", OFFLINE, bundle, file)
    last = ended.stderr.strip().splitlines()[-1]
    assert (ended.returncode == 0) == (last == "Verified OK"), ended.stderr
    return last


def test_files_have_checksums_signatures_and_provenance(releases: ReleaseRehearsal) -> None:
    folder = releases.files[NEXT]
    releases.run("env", f"--chdir={folder}", "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
    summed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert summed == {file.name for file in folder.iterdir() if "sigstore" not in file.name} - {"SHA256SUMS"}
    for name in ("*.whl", "*.lock", "*.tgz"):
        for file in folder.glob(name):
            assert verify_blob(releases, file, releases.key) == "Verified OK"
            provenance = Path(f"{file}.provenance.sigstore.json")
            options = [f"--key={releases.key}", OFFLINE, f"--bundle={provenance}", "--type=slsaprovenance1"]
            releases.run("cosign", "verify-blob-attestation", *options, file)
            assert describe(provenance) == (COMMIT, BUILT_BY, hashlib.sha256(file.read_bytes()).hexdigest())
    assert verify_blob(releases, folder / "SHA256SUMS", releases.key) == "Verified OK"


def describe(bundle: Path) -> tuple[str, str, str]:
    """Commit, workflow and checksum of the file that provenance names."""
    found: dict[str, Any] = json.loads(bundle.read_text())
    envelope = found.get("dsseEnvelope") or json.loads(base64.b64decode(found["base64Signature"]))
    statement = json.loads(base64.b64decode(envelope["payload"]))
    (dependency,) = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    builder, (subject,) = statement["predicate"]["runDetails"]["builder"]["id"], statement["subject"]
    return dependency["digest"]["gitCommit"], builder, subject["digest"]["sha256"]


def test_changed_files_and_other_keys_are_refused(releases: ReleaseRehearsal) -> None:
    for name in (f"rayhelm-{NEXT}.lock", "SHA256SUMS"):
        shutil.copy(releases.files[NEXT] / f"{name}.sigstore.json", releases.user)
        copy = releases.user / name
        copy.write_bytes((releases.files[NEXT] / name).read_bytes() + b"#")
        assert "invalid signature" in verify_blob(releases, copy, releases.key)
    releases.run("cosign", "generate-key-pair", COSIGN_PASSWORD="other")
    wheel = releases.files[NEXT] / f"rayhelm-{NEXT}-py3-none-any.whl"
    assert "invalid signature" in verify_blob(releases, wheel, releases.user / "cosign.pub")


@pytest.fixture
def _machines(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Nodes, on which the download before the upgrade ends."""
    fleet = Fleet("single-gpu", "main")
    with cluster.machines(fleet.machines()):
        cluster.apply(*stand_for(fleet.values("llama-8b", kuberay=cluster.place.kuberay)), namespace=namespace)
        yield


@pytest.mark.usefixtures("_machines")
def test_package_and_charts_upgrade_from_the_release_before(
    releases: ReleaseRehearsal, cluster: Cluster, namespace: str
) -> None:
    where = [f"--kubeconfig={cluster.place.kubeconfig}", f"--namespace={namespace}"]
    for number, version in enumerate((__version__, NEXT), start=1):
        ended = releases.install(version)
        assert ended.returncode == 0, ended.stderr
        assert version in releases.run("rayhelm", "--version")
        fleet = yaml.safe_load((releases.sources[version] / "values/single-gpu/fleet.yaml").read_text())
        fleet["clusters"]["main"]["kuberay"] = cluster.place.kuberay
        (releases.user / "fleet.yaml").write_text(yaml.safe_dump(fleet))
        releases.run("rayhelm", "render", "fleet.yaml", "--output", "out")
        for chart, name in {"ray-service": "llama-8b", "gateway": "gateway"}.items():
            source = [f"oci://{releases.registry}/charts/{chart}", f"--version={version}", "--plain-http"]
            source += ["--verify", f"--keyring={releases.keyring}", f"--values=out/{chart}/{name}.yaml"]
            releases.run("helm", "upgrade", "--install", name, *source, *where)
        found = json.loads(releases.run("helm", "list", *where, "--output=json"))
        assert {each["chart"] for each in found} == {f"ray-service-{version}", f"gateway-{version}"}
        assert {each["revision"] for each in found} == {str(number)}
        eventually(lambda: cluster.all("RayCluster", namespace), "KubeRay made a RayCluster of the RayService")
        assert cluster.find("Deployment", "gateway", namespace)
    for name in ("gateway", "llama-8b"):
        releases.run("helm", "uninstall", name, *where)
    eventually(lambda: not cluster.all("RayCluster", namespace), "the RayCluster is gone")


def test_sbom_has_every_installed_package_with_its_hash(releases: ReleaseRehearsal) -> None:
    assert releases.install(NEXT).returncode == 0
    installed = json.loads(releases.run("pip", "list", "--format=json", "--exclude=pip", "--exclude=setuptools"))
    sbom = json.loads((releases.files[NEXT] / f"rayhelm-{NEXT}.cdx.json").read_text())
    listed = {(part["name"], part["version"]): part for part in sbom["components"]}
    names = {(re.sub(r"[-_.]+", "-", each["name"]).lower(), each["version"]) for each in installed}
    assert ("rayhelm", NEXT) in names
    assert names <= set(listed), names - set(listed)
    hashes = {key: [each["hashes"] for each in part["externalReferences"]] for key, part in listed.items()}
    assert all(hashes[key] for key in names)


def test_pip_refuses_a_wheel_with_other_content(releases: ReleaseRehearsal) -> None:
    wheel = releases.home / "packages" / f"rayhelm-{NEXT}-py3-none-any.whl"
    content = wheel.read_bytes()
    try:
        wheel.write_bytes(content + b"\0")
        ended = releases.attempt(
            *("pip", "download", "--no-deps", "--require-hashes", "--requirement"),
            releases.files[NEXT] / f"rayhelm-{NEXT}.lock",
        )
    finally:
        wheel.write_bytes(content)
    assert (ended.returncode, "DO NOT MATCH THE HASHES" in ended.stderr) == (1, True), ended.stderr


def test_pushed_charts_are_signed_by_their_digest(releases: ReleaseRehearsal) -> None:
    assert len(releases.pushed[NEXT]) == 6
    for pushed in releases.pushed[NEXT]:
        releases.run("cosign", "verify", f"--key={releases.key}", OFFLINE, "--allow-http-registry", pushed)


def test_published_version_is_not_published_with_other_content(releases: ReleaseRehearsal) -> None:
    again = releases.publish(NEXT)
    assert (again.returncode, again.stdout.split()) == (0, releases.pushed[NEXT])
    rebuilt = releases.home / "rebuilt"  # the packages have the times of their files
    make_release(releases.sources[NEXT], NEXT, rebuilt)
    refused = publish(rebuilt, releases.registry, **releases.upload)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"has version {NEXT} with other content" in refused.stderr
