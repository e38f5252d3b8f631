"""Files that the download of a bucket writes: verified when they exist, never through links, with names of files."""

import hashlib
import io
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rayhelm.runtime.bucket_download import AzureBlob, DownloadError, download, parse_manifest

SHA = hashlib.sha256(b"weights").hexdigest()
FILES = {"config.json": b"{}", "parts/model.safetensors": b"weights"}


class Blob(io.BytesIO):
    def size(self) -> int:
        return len(self.getbuffer())

    def read_at(self, count: int, offset: int) -> bytes:
        return bytes(self.getbuffer()[offset : offset + count])


class Store:
    """A bucket in memory that counts what is opened."""

    def __init__(self, files: dict[str, bytes]) -> None:
        lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()]
        self.files = files | {"SHA256SUMS": "".join(lines).encode()}
        self.sha = hashlib.sha256(self.files["SHA256SUMS"]).hexdigest()
        self.opened: list[str] = []

    def open_input_file(self, path: str) -> Blob:
        name = path.removeprefix("models/")
        self.opened.append(name)
        return Blob(self.files[name])

    def download(self, folder: Path) -> None:
        self.opened.clear()
        download(self, "models", self.sha, folder, pause_s=0)


@pytest.fixture
def store() -> Store:
    return Store(FILES)


def test_file_that_exists_is_verified_and_not_read_again(store: Store, tmp_path: Path) -> None:
    store.download(tmp_path / "model")
    store.download(tmp_path / "model")
    assert store.opened == ["SHA256SUMS"]


def test_file_with_other_content_is_downloaded_again(store: Store, tmp_path: Path) -> None:
    store.download(tmp_path)
    (tmp_path / "config.json").write_bytes(b"evil")
    store.download(tmp_path)
    assert (tmp_path / "config.json").read_bytes() == b"{}"
    assert "config.json" in store.opened


@pytest.mark.parametrize(
    "name",
    ["model", "model/parts", "model/config.json", "model/config.json.part", "model/.lock", "model/gone"],
)
def test_download_writes_through_no_link(store: Store, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    path = tmp_path / name.replace("gone", "config.json")
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside if name in ("model", "model/parts") else outside / "file")
    with pytest.raises(DownloadError, match="is a link; remove it") as error:
        store.download(tmp_path / "model")
    assert error.value.code == 3
    assert not list(outside.iterdir())


def test_manifest_replaces_a_link_of_its_name(store: Store, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("own")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/SHA256SUMS").symlink_to(tmp_path / "own")
    store.download(tmp_path / "model")
    assert (tmp_path / "own").read_text() == "own"
    assert (tmp_path / "model/SHA256SUMS").read_bytes() == store.files["SHA256SUMS"]


def test_folder_with_the_name_of_a_file_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(DownloadError, match=r"config\.json is not a file; remove it"):
        store.download(tmp_path)


@pytest.mark.parametrize(
    "names",
    [["a\x1b[2Jb"], ["a\u202eb"], [".lock"], ["a", "a/b"], ["a", "a.part"], ["SHA256SUMS/a"]],
)
def test_manifest_with_a_name_that_collides_or_misleads_is_refused(names: list[str]) -> None:
    with pytest.raises(DownloadError) as error:
        parse_manifest("".join(f"{SHA}  {name}\n" for name in names))
    assert error.value.code == 3
    assert str(error.value).isprintable()


def test_object_that_is_larger_than_the_volume_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Blob, "size", lambda self: 1 << 60)
    with pytest.raises(DownloadError, match=r"more bytes, the volume has .*: enlarge the claim"):
        store.download(tmp_path)


class Azure(BaseHTTPRequestHandler):
    """A blob `model`, and one that is elsewhere."""

    seen: list[str] = []

    def do_HEAD(self) -> None:
        self.seen.append(self.path)
        self.send_response({"/model": 200, "/moved": 302}.get(self.path.partition("?")[0], 404))
        self.send_header("Location", f"http://{self.headers['Host']}/model")
        self.send_header("Content-Length", "7")
        self.end_headers()

    def do_GET(self) -> None:
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        content = b"weights"[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def azure() -> Iterator[str]:
    Azure.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Azure) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_redirect_of_a_store_is_not_followed(azure: str) -> None:
    with pytest.raises(DownloadError, match="redirects") as error:
        AzureBlob(f"{azure}/moved?sig=s3cret")
    assert Azure.seen == ["/moved?sig=s3cret"]
    assert "s3cret" not in str(error.value)


def test_blob_is_read_by_ranges(azure: str) -> None:
    assert AzureBlob(f"{azure}/model").read_at(3, 2) == b"igh"


def test_missing_blob_is_a_missing_file(azure: str) -> None:
    with pytest.raises(FileNotFoundError):
        AzureBlob(f"{azure}/gone")
