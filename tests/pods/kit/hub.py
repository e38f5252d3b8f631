"""A mirror of the hub with one repository: as much of the hub's API as `hf download` asks for. Runs in a pod, with what
the serving image has.

`python hub.py FAMILY FOLDER PORT`: makes a checkpoint of the tiny model FAMILY with random weights, and gives it out
under any name and any revision. Each request is a line of the log.
"""

import json
import shutil
import sys
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

MODELS = Path("/models")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = Path()

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        """`/api/models/ORG/NAME/tree/REVISION` lists files, `/ORG/NAME/resolve/REVISION/PATH` is one."""
        match urlsplit(self.path).path.strip("/").split("/"):
            case ["api", "models", _, _, "tree", revision]:
                listed = json.dumps([_entry(path) for path in sorted(self.folder.iterdir()) if path.is_file()]).encode()
                self._send(200, listed, {"Content-Type": "application/json", "X-Repo-Commit": revision}, body)
            case [_, _, "resolve", revision, name] if (path := self.folder / name).is_file():
                content = path.read_bytes()
                tag = {"ETag": f'"{sha256(content).hexdigest()}"', "X-Repo-Commit": revision}
                self._send(200, content, tag, body)
            case _:
                self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"}, body)

    def _send(self, status: int, content: bytes, headers: dict[str, str], body: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)


def _entry(path: Path) -> dict[str, object]:
    content = path.read_bytes()
    return {"type": "file", "path": path.name, "size": len(content), "oid": sha1(content).hexdigest()}


def make(family: str, folder: Path) -> None:
    """The tiny model of the image has no weights, for engines make them up: here it gets some."""
    from transformers import AutoConfig, AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(MODELS / family))
    model.save_pretrained(folder)
    for path in (MODELS / family).iterdir():
        if path.is_file():  # not the folder of the tiny adapters
            shutil.copy(path, folder)


if __name__ == "__main__":
    family, folder, port = sys.argv[1:]
    make(family, Path(folder))
    Handler.folder = Path(folder)
    ThreadingHTTPServer(("", int(port)), Handler).serve_forever()
