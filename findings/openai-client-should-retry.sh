#!/usr/bin/env bash
# openai (Python client): what decides whether a response is retried.
#
# Software: openai 3.57.0.
# A good guess: the status does. 429, 500, 502, 503 and 504 are sent again, 4xx of the request itself and 501 are not.
# What happens: 409 and 501 are sent again too, three requests in all. And a response header overrides each status:
# `x-should-retry: false` on 503 leaves one request, `x-should-retry: true` on 400 makes it three.
# Why it matters: a gateway that refuses a request for good with 503 or 501 (no such model, a full queue, a service at rest)
# gets three times the load from each client, unless it sends that header; `Retry-After` only moves the repeats.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openai==3.57.0

cat >"$folder/ask.py" <<'PYTHON'
import http.server
import threading

import openai

ROWS = [
    # status, x-should-retry, requests
    (400, None, 1),
    (404, None, 1),
    (409, None, 3),
    (429, None, 3),
    (501, None, 3),
    (503, None, 3),
    (503, "false", 1),
    (429, "false", 1),
    (400, "true", 3),
]


class Handler(http.server.BaseHTTPRequestHandler):
    row = ROWS[0]
    requests = 0

    def do_POST(self):
        Handler.requests += 1
        self.rfile.read(int(self.headers["content-length"]))
        status, should_retry, _ = self.row
        self.send_response(status)
        self.send_header("retry-after-ms", "1")
        if should_retry:
            self.send_header("x-should-retry", should_retry)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")
changed = 0
for row in ROWS:
    Handler.row, Handler.requests = row, 0
    try:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    except openai.APIStatusError:
        pass
    print(f"status {row[0]}, x-should-retry {row[1]}: {Handler.requests} requests")
    changed += Handler.requests != row[2]
raise SystemExit(f"changed: {changed} rows" if changed else 0)
PYTHON
"$folder/venv/bin/python" "$folder/ask.py"
