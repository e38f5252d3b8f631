"""Download a model from a bucket: `python -I bucket_download.py [OPTION...] SOURCE SHA FOLDER`

SOURCE is `s3://BUCKET/PREFIX`; `gs://BUCKET/PREFIX`, which is read through the S3-compatible API of Google Cloud
Storage with HMAC keys; or `azure://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX`, read with the SAS token of
AZURE_STORAGE_SAS_TOKEN (`abfss://` with the host of Data Lake Storage is the same container). A prefix has no revision,
so `SHA256SUMS` below it names each file with its sha256, and SHA, the sha256 of `SHA256SUMS` itself, pins the content.
ETags and the checksums of stores are not used: those of multipart uploads and of encrypted objects are not of the
content.

A file has the suffix `.part` until its sha256 is right. An interrupted download continues where it stopped, also in
the next pod. Files that exist are verified again, because pods of the tenant can write to the claim; links are refused.
Two downloads of one folder take turns. S3 is read with pyarrow, which each image with `ray[llm]` has,
because Ray reads buckets with it. Azure is read with HTTP requests: pyarrow takes SAS tokens from version 20 on, and
images of Ray have older ones.

Exit codes: 0 complete, 1 no content or no connection after retries, 2 wrong usage, 3 the content is not the pinned one,
4 access denied.
"""

import argparse
import fcntl
import hashlib
import http.client
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path, PurePosixPath
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

__all__ = ["MANIFEST", "DownloadError", "download", "open_store", "parse_manifest", "run"]

MANIFEST = "SHA256SUMS"
"""File below the prefix that `sha256sum` writes: one line for each file."""
LOCK = ".lock"
"""File that a download locks."""
MAX_MANIFEST = 4 << 20
"""Bytes of a manifest. A checkpoint of 1000 files has 0.1 MB."""
BLOCK = 8 << 20
"""Bytes of one read."""
FILES = 4
"""Files that are read at the same time. One connection does not fill the network of a node."""
TRIES = 6
"""Consecutive reads of a file that bring no byte, after which the download stops."""
PAUSE_S = 1.0
"""Pause before the second try, seconds. It doubles with each try."""
GOOGLE = "https://storage.googleapis.com"
"""Endpoint of Google Cloud Storage, which takes the signatures of S3. It takes `auto` for the region."""
_LINE = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?([^\\\0]+)")
SAS_TOKEN = "AZURE_STORAGE_SAS_TOKEN"
"""Environment variable with a shared access signature: `sv=...&sig=...`."""
TIMEOUT_S = 60.0
"""Time without data after which a request to Azure is tried again, seconds."""
_DENIED = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch"
    r"|EXPIRED_TOKEN|ExpiredToken|INVALID_CLIENT_TOKEN|HTTP status 40[13]|Permission denied|PERMISSION_DENIED"
)


class DownloadError(Exception):
    """A download that cannot be completed, with the exit code of the program."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def run(arguments: Sequence[str]) -> int:
    """Download one model. Returns the exit code; the message of an error has its fix."""
    parser = argparse.ArgumentParser(prog="bucket_download.py")
    for option in ("endpoint", "region", "secret"):
        parser.add_argument(f"--{option}", default="")
    for name in ("source", "sha", "folder"):
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    try:
        store, prefix = open_store(given.source, endpoint=given.endpoint, region=given.region)
        download(store, prefix, given.sha, Path(given.folder), secret=given.secret)
    except DownloadError as error:
        print(f"{given.source}: {error}", file=sys.stderr, flush=True)
        return error.code
    print(f"{given.source}: complete in {given.folder}", flush=True)
    return 0


def open_store(source: str, *, endpoint: str = "", region: str = "") -> tuple[Any, str]:
    """Return the file system of pyarrow for a source, and the path of the prefix in it. Credentials are those of the
    environment, as the library of the store finds them. Raises DownloadError for another scheme."""
    url = urlsplit(source)
    if url.scheme == "gs":
        endpoint, region = endpoint or GOOGLE, region or "auto"
        # Google does not know the checksums of Amazon's objects, and each file has its sha256.
        os.environ.setdefault("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required")
    given = urlsplit(endpoint)
    path = f"{url.netloc}{url.path}".rstrip("/")
    override = {"endpoint_override": given.netloc, "scheme": given.scheme} if endpoint else {}
    if url.scheme in ("s3", "gs"):
        from pyarrow import fs

        options = {"region": region} if region else {}
        certificates = os.environ.get("SSL_CERT_FILE")
        options |= {"tls_ca_file_path": certificates} if certificates else {}
        retries = fs.AwsStandardS3RetryStrategy(max_attempts=2)  # beside those of `_attempt`, which continue a file
        return fs.S3FileSystem(
            connect_timeout=10, request_timeout=60, retry_strategy=retries, **options, **override
        ), path
    if url.scheme in ("azure", "abfss"):
        return AzureContainer(source, endpoint), url.path.strip("/")
    raise DownloadError(f"unknown scheme {url.scheme!r}; known: s3, gs, azure, abfss", 2)


class _NoRedirects(HTTPRedirectHandler):
    """Refuse redirects: the address has the token, and the answer could name another host or plain http."""

    def redirect_request(self, *_: Any) -> None:
        return None


class AzureContainer:
    """A container of Azure Blob Storage, as much of pyarrow's file systems as `download` needs. `endpoint`: address of
    an emulator, whose paths begin with the account."""

    def __init__(self, source: str, endpoint: str = "") -> None:
        url = urlsplit(source)
        account, _, domain = (url.hostname or "").partition(".")
        # The same container has an address in Data Lake Storage, which has another API.
        domain, kinds = re.subn(r"^(.+\.)?(?:blob|dfs)\.", r"\1blob.", domain)
        if not url.username or not kinds or not re.fullmatch(r"[a-z0-9]{3,24}", account):
            raise DownloadError("this is not azure://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX", 2)
        host = f"{endpoint}/{account}" if endpoint else f"https://{account}.{domain}"
        self._address = f"{host}/{url.username}"
        self._token = os.environ.get(SAS_TOKEN, "").strip().removeprefix("?")

    def open_input_file(self, path: str) -> "AzureBlob":
        """Open a blob. Raises FileNotFoundError, and OSError with the HTTP status and the code of Azure."""
        if not self._token:  # Azure answers 404 or 409, as if the blob were missing.
            raise OSError(f"HTTP status 401: {SAS_TOKEN} is empty")
        return AzureBlob(f"{self._address}/{quote(path.lstrip('/'))}?{self._token}")


class AzureBlob:
    """A blob, by its address with the SAS token. Messages of its errors have no address."""

    def __init__(self, address: str) -> None:
        self._address = address
        with self._request("HEAD") as answer:
            self._size = int(answer.headers["Content-Length"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: each read is a connection of its own."""

    def size(self) -> int:
        """Return the size of the blob, bytes."""
        return self._size

    def read(self, most: int) -> bytes:
        """Return the first bytes."""
        return self.read_at(min(most, self._size), 0)

    def read_at(self, count: int, offset: int) -> bytes:
        """Return `count` bytes from `offset` on, or those that came before the connection ended."""
        if not count:
            return b""
        with self._request("GET", Range=f"bytes={offset}-{offset + count - 1}") as answer:
            if answer.status != 206:
                raise OSError(f"HTTP status {answer.status} instead of 206: the store does not read ranges")
            try:
                content: bytes = answer.read()
            except http.client.IncompleteRead as cut:
                content = cut.partial
        if not content:
            raise ConnectionError("the connection ended before the first byte")
        return content

    def _request(self, method: str, **headers: str) -> Any:
        try:
            request = Request(self._address, method=method, headers=headers)
            return build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S)
        except HTTPError as error:
            error.close()
            if 300 <= error.code < 400:
                raise DownloadError(f"the store redirects (HTTP status {error.code}): not followed", 1) from None
            code = error.headers.get("x-ms-error-code") or error.reason
            if error.code == 404:
                raise FileNotFoundError(code) from None
            raise OSError(f"HTTP status {error.code}: {code}") from None
        except http.client.InvalidURL:
            raise OSError("HTTP status 401: the token has characters that no token has") from None
        except http.client.HTTPException as error:
            raise ConnectionError(type(error).__name__) from None


def download(store: Any, prefix: str, sha: str, folder: Path, *, secret: str = "", pause_s: float = PAUSE_S) -> None:
    """Write each file of the manifest into `folder`. Raises DownloadError."""
    _refuse_link(folder)
    folder.mkdir(parents=True, exist_ok=True)
    reader = _Reader(store, prefix, secret, pause_s)
    with _lock(folder):
        manifest = reader.read_manifest(sha)
        files = parse_manifest(manifest.decode())
        with ThreadPoolExecutor(FILES) as pool:
            tasks = [pool.submit(reader.fetch, name, wanted, folder / name) for name, wanted in files.items()]
            try:
                for task in tasks:
                    task.result()
            except BaseException:
                reader.is_stopped = True
                pool.shutdown(cancel_futures=True)
                raise
        (folder / MANIFEST).unlink(missing_ok=True)
        with os.fdopen(_open_file(folder / MANIFEST, os.O_WRONLY), "wb") as file:
            file.write(manifest)


def parse_manifest(text: str) -> dict[str, str]:
    """Return the sha256 of each file by its relative path. Raises DownloadError for a line that `sha256sum` does not
    write, and for a path outside the folder."""
    files: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        parts = PurePosixPath(match[2]).parts if match else ()
        if not match or not parts or parts[0] == "/" or ".." in parts or parts == (MANIFEST,) or match[2].endswith("/"):
            raise DownloadError(f"{MANIFEST}:{number}: {line[:100]!r} is not `SHA256  PATH`, PATH below the prefix", 3)
        if not match[2].isprintable() or parts == (LOCK,):
            raise DownloadError(f"{MANIFEST}:{number}: {match[2][:100]!r} is not the name of a file of a model", 3)
        if files.setdefault(match[2], match[1]) != match[1]:
            raise DownloadError(f"{MANIFEST}:{number}: {match[2]} is there twice, with two sha256", 3)
    if not files:
        raise DownloadError(f"{MANIFEST} has no lines", 3)
    taken = {PurePosixPath(name) for name in files} | {PurePosixPath(MANIFEST), PurePosixPath(LOCK)}
    for name in files:
        if needed := {*PurePosixPath(name).parents, PurePosixPath(f"{name}.part")} & taken:
            raise DownloadError(f"{MANIFEST}: {name} needs the name of {needed.pop()}, which is a file", 3)
    return files


def _refuse_link(path: Path) -> None:
    """Raises DownloadError for a link: a pod of the tenant made it, and what is behind it is not of this model."""
    if path.is_symlink():
        raise DownloadError(f"{path} is a link; remove it: nothing is written through links", 3)


def _open_file(path: Path, flags: int) -> int:
    """Open a file, and never a link."""
    _refuse_link(path)
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o666)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Wait for another download of the folder, in whichever pod."""
    with os.fdopen(_open_file(folder / LOCK, os.O_WRONLY), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Reader:
    def __init__(self, store: Any, prefix: str, secret: str, pause_s: float) -> None:
        self.store, self.prefix, self.secret, self.pause_s = store, prefix, secret, pause_s
        self.is_stopped = False

    def read_manifest(self, sha: str) -> bytes:
        with self._open(MANIFEST) as file:
            content: bytes = self._attempt(MANIFEST, lambda: file.read(MAX_MANIFEST + 1))
        if len(content) > MAX_MANIFEST:
            raise DownloadError(f"{MANIFEST} has more than {MAX_MANIFEST} bytes", 3)
        if (found := hashlib.sha256(content).hexdigest()) != sha:
            raise DownloadError(
                f"the sha256 of {MANIFEST} is {found}, and the revision is {sha}: the model was changed, or this is the"
                " revision of another one. Upload each version under a prefix of its own, and never write to it again",
                3,
            )
        return content

    def fetch(self, name: str, wanted: str, path: Path) -> None:
        """Download one file, if it is not there with its content. `path` is the folder and `name`."""
        for parent in path.parents[: len(PurePosixPath(name).parts)]:
            _refuse_link(parent)
        if self._is_there(name, wanted, path):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        is_continued = part.exists()
        with os.fdopen(_open_file(part, os.O_RDWR | os.O_APPEND), "a+b") as target:
            found = self._append(name, target)
            target.flush()
            os.fsync(target.fileno())
        if found != wanted:
            part.unlink()
            if is_continued:
                print(f"{name}: the earlier part was not of this file; from the start", file=sys.stderr, flush=True)
                self.fetch(name, wanted, path)
                return
            raise DownloadError(
                f"the sha256 of {name} is {found}, and {MANIFEST} says {wanted}: the object was changed after"
                f" {MANIFEST} was written. The file was deleted",
                3,
            )
        part.rename(path)
        print(f"{name}: {path.stat().st_size} bytes, sha256 {found}", flush=True)

    def _is_there(self, name: str, wanted: str, path: Path) -> bool:
        """Return whether the file has its content. Deletes another one, and refuses what is no file."""
        _refuse_link(path)
        if not path.exists():
            return False
        if not path.is_file():
            raise DownloadError(f"{path} is not a file; remove it", 3)
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == wanted:
                return True
        print(f"{name}: the file that is there has another sha256; from the start", file=sys.stderr, flush=True)
        path.unlink()
        return False

    def _append(self, name: str, target: BufferedRandom) -> str:
        """Read from the end of the file on, and return the sha256 of all of it."""
        target.seek(0)
        digest = hashlib.file_digest(target, "sha256")
        with self._open(name) as source:
            size = source.size()
            if target.tell() > size:
                target.seek(0)
                target.truncate()
                digest = hashlib.sha256()
            if (missing := size - target.tell()) > (free := shutil.disk_usage(target.fileno()).free):
                raise DownloadError(f"{name} needs {missing} more bytes, the volume has {free}: enlarge the claim", 1)
            while (offset := target.tell()) < size:
                if self.is_stopped:
                    raise DownloadError(f"{name}: stopped after {offset} bytes", 1)
                block = self._attempt(name, lambda at=offset: source.read_at(min(BLOCK, size - at), at))
                target.write(block)
                digest.update(block)
        return digest.hexdigest()

    def _open(self, name: str) -> Any:
        return self._attempt(name, lambda: self.store.open_input_file(f"{self.prefix}/{name}"))

    def _attempt(self, name: str, read: Any) -> Any:
        """Return what `read` returns. Retries errors of the connection."""
        for tried in range(TRIES):
            if tried:
                time.sleep(self.pause_s * 2 ** (tried - 1))
            try:
                return read()
            except FileNotFoundError:
                raise DownloadError(self._describe_missing(name), 1) from None
            except OSError as error:
                if _DENIED.search(str(error)):
                    raise DownloadError(self._describe_denied(name, error), 4) from None
                last = error
                print(f"{name}: {_shorten(error)}", file=sys.stderr, flush=True)
        raise DownloadError(
            f"{name} cannot be read after {TRIES} tries: {_shorten(last)}. Check the endpoint, the region, and that"
            " networkPolicy.bucket allows its addresses and port; the next start continues the download",
            1,
        )

    def _describe_missing(self, name: str) -> str:
        if name != MANIFEST:
            return f"{name} does not exist, and {MANIFEST} names it: upload it again, without renaming it"
        return (
            f"{MANIFEST} does not exist. In the folder of the model: find . -type f ! -name {MANIFEST} -print0 |"
            f" sort -z | xargs -0 sha256sum > {MANIFEST}; upload it too, and set the revision to the sha256 of it"
        )

    def _describe_denied(self, name: str, error: OSError) -> str:
        if isinstance(self.store, AzureContainer):
            no_secret = f"the Secret has no {SAS_TOKEN}, or none is named: set credentialsSecret"
            needed = "sp=r, an se in the future, and a resource that has the prefix."
        else:
            no_secret = "no Secret is named: set credentialsSecret, or bind the service account of the Job to a role"
            needed = (
                "s3:GetObject (Google: storage.objects.get) below the prefix."
                " Without s3:ListBucket, S3 denies access to objects that do not exist, too."
            )
        given = f"check the keys of Secret {self.secret!r}" if self.secret else no_secret
        return f"the store denies access to {name}: {given}; they need {needed} {_shorten(error)}"


def _shorten(error: OSError) -> str:
    return " ".join(str(error).split())[:300]


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
