"""The program that downloads models from buckets, against Azure Blob Storage on loopback."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from rayhelm.runtime import bucket_download
from rayhelm.runtime.bucket_download import BLOCK, SAS_TOKEN, DownloadError, download, open_store
from shared.azure_store import ACCOUNT, CONTAINER, serve_container, sign, upload_model
from shared.object_store import Proxy
from shared.ports import reserve_port

pytestmark = pytest.mark.serve

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
WEIGHTS = os.urandom(2 * BLOCK + 12345)
FILES = {"config.json": b"{}", "parts/model one.safetensors": WEIGHTS, "empty": b""}
OTHER_KEY = "bm90IHRoaXMga2V5"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of a store with the container `models`."""
    with serve_container(tmp_path_factory.mktemp("store")) as port:
        yield port


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A prefix of the test."""
    return f"{request.node.name.partition('[')[0]}/v1"


@pytest.fixture
def proxy(store: int) -> Iterator[Proxy]:
    proxy = Proxy(store)
    yield proxy
    proxy.close()


def build_source(prefix: str, *, scheme: str = "azure", kind: str = "blob") -> str:
    return f"{scheme}://{CONTAINER}@{ACCOUNT}.{kind}.core.windows.net/{prefix}"


def run(port: int, source: str, sha: str, folder: Path, token: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the program as the Job does."""
    command = [sys.executable, "-I", bucket_download.__file__, f"--endpoint=http://127.0.0.1:{port}", *options]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), SAS_TOKEN: token}
    return subprocess.run([*command, source, sha, str(folder)], env=env, capture_output=True, text=True, check=False)


def fetch(port: int, prefix: str, sha: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process, without pauses between tries."""
    monkeypatch.setenv(SAS_TOKEN, sign())
    store, path = open_store(build_source(prefix), endpoint=f"http://127.0.0.1:{port}")
    download(store, path, sha, folder, secret="bucket-reader", pause_s=0)


def content(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in {".lock", "SHA256SUMS"}]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(("scheme", "kind"), [("azure", "blob"), ("abfss", "dfs")])
def test_job_downloads_each_file_with_a_token_that_can_only_read(
    store: int, prefix: str, tmp_path: Path, scheme: str, kind: str
) -> None:
    sha = upload_model(store, prefix, FILES)
    source = build_source(prefix, scheme=scheme, kind=kind)
    done = run(store, source, sha, tmp_path / "model", f"?{sign()}\n")
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "model") == FILES


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("acme.blob.core.windows.net", "https://acme.blob.core.windows.net/models"),
        ("acme.dfs.core.windows.net", "https://acme.blob.core.windows.net/models"),
        ("acme.z01.dfs.storage.azure.net", "https://acme.z01.blob.storage.azure.net/models"),
        ("acme.blob.core.usgovcloudapi.net", "https://acme.blob.core.usgovcloudapi.net/models"),
    ],
)
def test_address_of_a_container_is_that_of_blob_storage(host: str, address: str) -> None:
    store, path = open_store(f"abfss://models@{host}/qwen/v1/")
    assert store._address == address
    assert path == "qwen/v1"


@pytest.mark.parametrize("source", ["azure://acme.blob.core.windows.net/models", "azure://models@acme/qwen"])
def test_source_without_a_container_or_an_account_is_refused(source: str) -> None:
    with pytest.raises(DownloadError, match="azure://CONTAINER@ACCOUNT") as refused:
        open_store(source)
    assert refused.value.code == 2


def test_next_pod_continues_where_the_download_stopped(
    store: int, proxy: Proxy, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = upload_model(store, prefix, {"model.safetensors": WEIGHTS})
    # Of the manifest its size and its content, of the model its size, one block and a part of the next.
    proxy.allowance = [1 << 20, 1 << 20, 1 << 20, BLOCK + 4096, 1 << 20, *[0] * 200]
    with pytest.raises(DownloadError, match="cannot be read after") as stopped:
        fetch(proxy.port, prefix, sha, tmp_path, monkeypatch)
    assert stopped.value.code == 1
    size = (tmp_path / "model.safetensors.part").stat().st_size
    assert BLOCK < size < BLOCK + (1 << 20)
    proxy.allowance, proxy.ranges = [], []
    fetch(proxy.port, prefix, sha, tmp_path, monkeypatch)
    assert content(tmp_path) == {"model.safetensors": WEIGHTS}
    assert min(first for path, first in proxy.ranges if path.endswith("model.safetensors")) == size


@pytest.mark.parametrize(
    "token",
    ["", "two tokens", "sig=x", sign(key=OTHER_KEY), sign(valid=timedelta(minutes=-1)), sign(permissions="w")],
    ids=["none", "spaces", "no-signature", "other-key", "expired", "cannot-read"],
)
def test_denied_access_names_the_secret_and_not_the_token(store: int, prefix: str, tmp_path: Path, token: str) -> None:
    sha = upload_model(store, prefix, FILES)
    denied = run(store, build_source(prefix), sha, tmp_path / "model", token, "--secret=bucket-reader")
    assert denied.returncode == 4, denied.stderr
    assert "check the keys of Secret 'bucket-reader'; they need sp=r" in denied.stderr
    assert "Traceback" not in denied.stderr
    assert not token or token not in denied.stderr
    without = run(store, build_source(prefix), sha, tmp_path / "model", token)
    assert f"the Secret has no {SAS_TOKEN}, or none is named" in without.stderr


def test_missing_manifest_is_named(store: int, prefix: str, tmp_path: Path) -> None:
    missing = run(store, build_source(prefix), SHA, tmp_path / "model", sign())
    assert missing.returncode == 1
    assert "SHA256SUMS does not exist. In the folder of the model: find . " in missing.stderr


def test_store_that_does_not_answer_names_the_network_policy(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reserve_port() as port, pytest.raises(DownloadError, match=r"networkPolicy\.bucket") as unreachable:
        fetch(port, prefix, SHA, tmp_path, monkeypatch)
    assert unreachable.value.code == 1
