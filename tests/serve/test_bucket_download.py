"""The program that downloads models from buckets, against a real S3-compatible server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rayhelm.runtime import bucket_download
from rayhelm.runtime.bucket_download import BLOCK, DownloadError, download, open_store, parse_manifest
from shared.object_store import KEYS, Proxy, serve_store, upload, upload_model
from shared.ports import reserve_port

pytestmark = pytest.mark.serve

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
WEIGHTS = os.urandom(2 * BLOCK + 12345)
FILES = {"config.json": b"{}", "parts/model.safetensors": WEIGHTS}
OUTSIDE = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
"""Nothing of the computer's own credentials; uploads in the form that the server knows."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of a store with an empty bucket `models`."""
    with serve_store(tmp_path_factory.mktemp("store")) as port:
        yield port


@pytest.fixture
def bucket(store: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[Any, str]:
    """The store as an administrator sees it, and a prefix of the test."""
    from pyarrow import fs

    for name, value in {**KEYS, **OUTSIDE}.items():
        monkeypatch.setenv(name, value)
    found = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{store}", scheme="http", allow_bucket_creation=True)
    found.create_dir("models")
    return found, f"models/{request.node.name.partition('[')[0]}"


@pytest.fixture
def proxy(store: int) -> Iterator[Proxy]:
    proxy = Proxy(store)
    yield proxy
    proxy.close()


def run(
    port: int, prefix: str, sha: str, folder: Path, *options: str, scheme: str = "s3", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the program as the Job does."""
    command = [sys.executable, "-I", bucket_download.__file__, f"--endpoint=http://127.0.0.1:{port}", *options]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **OUTSIDE, **env}
    return subprocess.run(
        [*command, f"{scheme}://{prefix}", sha, str(folder)], env=env, capture_output=True, text=True, check=False
    )


def fetch(port: int, prefix: str, sha: str, folder: Path) -> None:
    """Run in this process, without pauses between tries."""
    store, path = open_store(f"s3://{prefix}", endpoint=f"http://127.0.0.1:{port}")
    download(store, path, sha, folder, secret="bucket-reader", pause_s=0)


def content(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in {".lock", "SHA256SUMS"}]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_job_downloads_each_file_and_a_second_run_none(bucket, proxy, tmp_path):
    store, prefix = bucket
    sha = upload_model(store, prefix, FILES)
    done = run(proxy.port, prefix, sha, tmp_path / "model", **KEYS)
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "model") == FILES
    read = len(proxy.ranges)
    assert run(proxy.port, prefix, sha, tmp_path / "model", **KEYS).returncode == 0
    assert {path.rpartition("/")[2] for path, _ in proxy.ranges[read:]} == {"SHA256SUMS"}


def test_google_source_is_read_with_signatures_of_s3(bucket, store, tmp_path):
    files, prefix = bucket
    sha = upload_model(files, prefix, FILES)
    done = run(store, prefix, sha, tmp_path / "model", scheme="gs", **KEYS)
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "model") == FILES
    denied = run(store, prefix, sha, tmp_path / "other", scheme="gs", **{**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong"})
    assert denied.returncode == 4
    assert "storage.objects.get" in denied.stderr


def test_google_source_is_read_from_google_when_no_endpoint_is_given(monkeypatch):
    monkeypatch.delenv("AWS_RESPONSE_CHECKSUM_VALIDATION", raising=False)
    store, path = open_store("gs://acme_models/qwen/v1/")
    options = store.__reduce__()[1][0]
    assert (options["endpoint_override"], options["scheme"], options["region"]) == (
        "storage.googleapis.com",
        "https",
        "auto",
    )
    assert path == "acme_models/qwen/v1"
    monkeypatch.delenv("AWS_RESPONSE_CHECKSUM_VALIDATION")


def test_download_survives_connections_that_are_cut(bucket, proxy, tmp_path):
    store, prefix = bucket
    sha = upload_model(store, prefix, FILES)
    proxy.allowance = [1 << 20] * 4
    fetch(proxy.port, prefix, sha, tmp_path)
    assert content(tmp_path) == FILES
    assert not proxy.allowance, "each of these connections was used and cut"


def test_next_pod_continues_where_the_download_stopped(bucket, proxy, tmp_path):
    store, prefix = bucket
    sha = upload_model(store, prefix, {"model.safetensors": WEIGHTS})
    proxy.allowance = [BLOCK + (1 << 20), *[0] * 200]
    with pytest.raises(DownloadError, match="cannot be read after") as stopped:
        fetch(proxy.port, prefix, sha, tmp_path)
    assert stopped.value.code == 1
    part = tmp_path / "model.safetensors.part"
    size = part.stat().st_size
    assert BLOCK <= size < len(WEIGHTS)
    proxy.allowance, proxy.ranges = [], []
    fetch(proxy.port, prefix, sha, tmp_path)
    assert content(tmp_path) == {"model.safetensors": WEIGHTS}
    assert min(first for path, first in proxy.ranges if path.endswith("model.safetensors")) == size


def test_object_that_was_changed_is_refused_and_deleted(bucket, store, tmp_path):
    files, prefix = bucket
    sha = upload_model(files, prefix, FILES)
    upload(files, f"{prefix}/parts/model.safetensors", WEIGHTS[:-1] + bytes([WEIGHTS[-1] ^ 1]))
    refused = run(store, prefix, sha, tmp_path / "model", **KEYS)
    assert refused.returncode == 3
    assert "parts/model.safetensors" in refused.stderr
    assert "SHA256SUMS says" in refused.stderr
    assert not list((tmp_path / "model/parts").iterdir())


def test_another_manifest_is_refused_before_any_file_is_read(bucket, store, tmp_path):
    files, prefix = bucket
    upload_model(files, prefix, FILES)
    refused = run(store, prefix, SHA, tmp_path / "model", **KEYS)
    assert refused.returncode == 3
    assert f"the revision is {SHA}" in refused.stderr
    assert not content(tmp_path / "model")


@pytest.mark.parametrize("begun", [b"other bytes", bytes(len(WEIGHTS) + 1)])
def test_damaged_part_of_an_earlier_download_is_not_kept(bucket, store, tmp_path, begun):
    files, prefix = bucket
    sha = upload_model(files, prefix, {"a.bin": WEIGHTS})
    (tmp_path / "a.bin.part").write_bytes(begun)
    fetch(store, prefix, sha, tmp_path)
    assert content(tmp_path) == {"a.bin": WEIGHTS}


@pytest.mark.parametrize("keys", [{**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong"}, {**KEYS, "AWS_ACCESS_KEY_ID": "x"}, {}])
def test_denied_access_names_the_secret_and_what_it_needs(bucket, store, tmp_path, keys):
    files, prefix = bucket
    sha = upload_model(files, prefix, FILES)
    denied = run(store, prefix, sha, tmp_path / "model", "--secret=bucket-reader", **keys)
    assert denied.returncode == 4
    assert "check the keys of Secret 'bucket-reader'; they need s3:GetObject" in denied.stderr
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in denied.stderr
    without = run(store, prefix, sha, tmp_path / "model", **keys)
    assert "no Secret is named: set credentialsSecret" in without.stderr


def test_missing_object_is_named(bucket, store, tmp_path):
    files, prefix = bucket
    sha = upload_model(files, prefix, FILES)
    files.delete_file(f"{prefix}/config.json")
    with pytest.raises(DownloadError, match=r"^config\.json does not exist, and SHA256SUMS names it") as missing:
        fetch(store, prefix, sha, tmp_path)
    assert missing.value.code == 1


def test_command_for_a_missing_manifest_makes_one_that_is_accepted(bucket, store, tmp_path):
    files, prefix = bucket
    missing = run(store, prefix, SHA, tmp_path / "model", **KEYS)
    assert missing.returncode == 1
    command = missing.stderr.partition("In the folder of the model: ")[2].partition(";")[0]
    local = tmp_path / "local"
    for name, text in {"config.json": b"{}", "a b/weights.bin": b"weights"}.items():
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        (local / name).write_bytes(text)
    subprocess.run(["bash", "-c", command], cwd=local, check=True)
    for path in local.rglob("*"):
        if path.is_file():
            upload(files, f"{prefix}/{path.relative_to(local)}", path.read_bytes())
    sha = subprocess.run(["sha256sum", "SHA256SUMS"], cwd=local, check=True, capture_output=True, text=True).stdout
    assert run(store, prefix, sha.split()[0], tmp_path / "model", **KEYS).returncode == 0
    assert content(tmp_path / "model") == {"config.json": b"{}", "a b/weights.bin": b"weights"}


def test_two_downloads_of_one_folder_take_turns(bucket, proxy, tmp_path):
    store, prefix = bucket
    sha = upload_model(store, prefix, FILES)
    with ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(fetch, proxy.port, prefix, sha, tmp_path) for _ in range(2)]:
            task.result()
    assert content(tmp_path) == FILES
    assert len([first for path, first in proxy.ranges if path.endswith("config.json")]) == 1


def test_unreachable_store_names_the_network_policy(bucket, tmp_path):
    with reserve_port() as port, pytest.raises(DownloadError, match=r"networkPolicy\.bucket") as unreachable:
        fetch(port, bucket[1], SHA, tmp_path)
    assert unreachable.value.code == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{SHA}  ../outside\n",
        f"{SHA}  a/../../outside\n",
        f"{SHA}  /etc/passwd\n",
        f"{SHA}  SHA256SUMS\n",
        f"{SHA}  ./\n",
        f"\\{SHA}  a\\nb\n",
        f"{SHA[:-1]}  a\n",
        f"{SHA}  a\n{SHA[::-1]}  a\n",
        "not a manifest\n",
    ],
)
def test_manifest_that_names_no_file_below_the_prefix_is_refused(text):
    with pytest.raises(DownloadError, match="SHA256SUMS") as refused:
        parse_manifest(text)
    assert refused.value.code == 3


def test_source_that_is_no_bucket_is_refused(tmp_path):
    command = [sys.executable, "-I", bucket_download.__file__, "file:///etc", SHA, str(tmp_path / "model")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (
        2,
        "file:///etc: unknown scheme 'file'; known: s3, gs, azure, abfss\n",
    )
