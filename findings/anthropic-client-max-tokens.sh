#!/usr/bin/env bash
# anthropic (Python client): a request without stream and with a large `max_tokens`.
#
# Software: anthropic 2.14.0.
# A good guess: the client sends it to whatever server `base_url` names and waits for its timeout, 10 minutes by default.
# What happens: with `max_tokens` above 21,333 the client raises a ValueError and sends nothing: it counts 128,000 tokens an
# hour, for each model and each server. With any `timeout` of its own, even a shorter one, it sends the request.
# Why it matters: vLLM answers the same API at /v1/messages. Reasoning models are asked for 32,000 tokens and more, and a
# request that works with curl never reaches the server, so no log and no metric there shows why.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check anthropic==2.14.0

cat >"$folder/ask.py" <<'PYTHON'
import http.server
import json
import threading

import anthropic

ANSWER = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "my-model",
    "content": [{"type": "text", "text": "hello"}],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


class Handler(http.server.BaseHTTPRequestHandler):
    requests = 0

    def do_POST(self):
        Handler.requests += 1
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
changed = 0
for max_tokens, options, expected in [(21333, {}, 1), (21334, {}, 0), (32000, {}, 0), (32000, {"timeout": 60}, 1)]:
    client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.server_port}", api_key="none", **options)
    Handler.requests = 0
    try:
        client.messages.create(model="my-model", max_tokens=max_tokens, messages=[{"role": "user", "content": "hi"}])
        answer = "answered"
    except ValueError as error:
        answer = f"ValueError: {str(error)[:60]}"
    print(f"max_tokens {max_tokens}, {options or 'no options'}: {Handler.requests} requests, {answer}")
    changed += Handler.requests != expected
raise SystemExit(f"changed: {changed} rows" if changed else 0)
PYTHON
"$folder/venv/bin/python" "$folder/ask.py"
