"""`rayhelm images --fill` with a real registry."""

import base64
import hashlib
import json
import re
from pathlib import Path

import httpx
import pytest

from rayhelm.deploy.images.reference import ImageReference
from shared.command import run
from shared.registry import serve_registry

FLEET = """\
fleet: acme   # keep this
clusters:
  main:
    apiServer: {{cidrs: [10.0.0.1/32]}}
    image: {{repository: {registry}/team/ray, tag: 2.60.0-ours, ray: 2.60.0, vllm: 0.29.0}}   # ours
    gateway:
      allowedClients: [apps]
      values:
        image:
          repository: {registry}/haproxy
          # the tag of our base
          tag: "3.4"
pools: {{gpu: {{gpu: L4-24GB, nodes: 1, gpusPerNode: 1}}}}
models: {{chat: {{source: Qwen/Qwen3-8B, unpinnedReason: a trial of the test, context: 4096}}}}
tenants: {{apps: {{models: [chat], requestsPerMinute: 60}}}}
"""


def push(registry: str, name: str, tag: str, login: tuple[str, str] | None = None) -> str:
    """Push an image without layers, and return its digest."""
    config = b"{}"
    blob = f"sha256:{hashlib.sha256(config).hexdigest()}"
    kind = "application/vnd.oci.image.manifest.v1+json"
    described = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": blob, "size": len(config)}
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": described, "layers": [], "annotations": {"name": name}}
    content = json.dumps(manifest).encode()
    with httpx.Client(base_url=f"http://{registry}/v2/{name}", trust_env=False, auth=login) as client:
        where = httpx.URL(client.post("/blobs/uploads/").headers["location"])
        client.put(where, params={"digest": blob, **where.params}, content=config).raise_for_status()
        client.put(f"/manifests/{tag}", content=content, headers={"Content-Type": kind}).raise_for_status()
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_fill_writes_the_digests_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.yaml"
    with serve_registry(tmp_path) as host:
        file.write_text(before := FLEET.format(registry=host))
        ray, haproxy = push(host, "team/ray", "2.60.0-ours"), push(host, "haproxy", "3.4")
        answer = run(capsys, monkeypatch, "images", str(file), "--fill")
        assert answer.code == 0, answer.err
    assert answer.out.count(": digest written\n") == 2
    after = before.replace("vllm: 0.29.0}", f"vllm: 0.29.0, digest: {ray}}}")
    assert file.read_text() == after.replace('tag: "3.4"\n', f'tag: "3.4"\n          digest: {haproxy}\n')
    answer = run(capsys, monkeypatch, "images", str(file), "--fill")
    assert answer.out == "no digest to write: each image that can have one beside its tag has it\n", "and asks none"


def test_fill_writes_nothing_when_one_digest_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.yaml"
    with serve_registry(tmp_path) as host:
        file.write_text(before := FLEET.format(registry=host))
        push(host, "haproxy", "3.4")
        answer = run(capsys, monkeypatch, "images", str(file), "--fill")
    assert (answer.code, file.read_text()) == (3, before)
    assert f"{host}/team/ray:2.60.0-ours: the registry has no such tag" in answer.err
    assert "haproxy" not in answer.err
    answer = run(capsys, monkeypatch, "images", str(file), "--fill")
    assert (answer.code, answer.err.count("the registry does not answer")) == (3, 2)


def test_fill_leaves_the_operands_of_the_gpu_operator(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.yaml"
    operator = "    gpuOperator: {clusterPolicy: true}\n"
    file.write_text(FLEET.format(registry="r.example").replace("    gateway:\n", f"{operator}    gateway:\n"))
    asked = list[ImageReference]()

    def read_digests(images: list[ImageReference]) -> dict[ImageReference, str]:
        asked.extend(images)
        return dict.fromkeys(images, f"sha256:{'0a' * 32}")

    monkeypatch.setattr("rayhelm.cli.images.read_digests", read_digests)
    answer = run(capsys, monkeypatch, "images", str(file), "--fill")
    assert answer.code == 0, answer.err
    assert [image.repository for image in asked] == ["r.example/haproxy", "r.example/team/ray"]
    assert "clusters.main.values.nvidia.clusterPolicy.operands.driver: left out. A digest would" in answer.out
    assert "operands" not in file.read_text()


def test_fill_refuses_a_file_that_is_edited_while_registries_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET.format(registry="r.example"))
    edited = file.read_text().replace("2.60.0-ours", "2.60.0-newer")

    def read_digests(images: list[ImageReference]) -> dict[ImageReference, str]:
        file.write_text(edited)
        return dict.fromkeys(images, f"sha256:{'0a' * 32}")

    monkeypatch.setattr("rayhelm.cli.images.read_digests", read_digests)
    answer = run(capsys, monkeypatch, "images", str(file), "--fill")
    assert (answer.code, file.read_text()) == (1, edited)
    assert "changed while the command ran" in answer.err


def test_fill_uses_the_login_of_docker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.yaml"
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with serve_registry(tmp_path, login=True) as host:
        file.write_text(FLEET.format(registry=host))
        answer = run(capsys, monkeypatch, "images", str(file), "--fill")
        assert (answer.code, answer.err.count("the registry needs a login")) == (3, 2)
        found = re.search(r"password=(\S+?)[\s\"]", (tmp_path / "log").read_text())
        assert found
        login = ("docker", found[1])
        for name, tag in {"team/ray": "2.60.0-ours", "haproxy": "3.4"}.items():
            push(host, name, tag, login)
        written = base64.b64encode(":".join(login).encode()).decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": written}}}))
        answer = run(capsys, monkeypatch, "images", str(file), "--fill")
    assert answer.code == 0, answer.err


def test_fill_is_called_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run(capsys, monkeypatch, "images", "fleet.yaml", "--fill", "--mirror", "registry.example/mirror")
    assert (answer.code, "call it alone" in answer.err) == (2, True)
