#!/usr/bin/env bash
# openai (Python client): which answers to a request with `stream=True` are errors.
#
# Software: openai 3.57.0.
# A good guess: a stream that stops before `data: [DONE]` and before a `finish_reason` raises; so does an event of type
# `error`, and an answer that is no event stream at all.
# What happens: none of them raises. A stream that was cut after a whole event ends the loop as a complete one does. A JSON
# body with `application/json` gives no chunk and no error. An event `error` whose data has no key `error` is a chunk with
# `choices` None. Only data with a key `error` raises, of whatever event.
# Why it matters: behind a gateway or a proxy a lost worker, or a server that ignores `stream`, gives shorter or empty text
# and a success. Clients have to check `finish_reason`; servers have to send `data: {"error": ...}`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openai==3.57.0

cat >"$folder/ask.py" <<'PYTHON'
import http.server
import json
import threading

import openai

CHUNK = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "half of"}}]}
WHOLE = {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "all"}}]}
EVENTS, JSON = "text/event-stream", "application/json"
ROWS = [
    # answer, content type, body, what the loop over the stream sees
    ("cut after an event", EVENTS, f"data: {json.dumps(CHUNK)}\n\n", ["half of"]),
    ("empty stream", EVENTS, "", []),
    ("no stream", JSON, json.dumps(WHOLE), []),
    ("event error", EVENTS, 'event: error\ndata: {"message": "engine died", "code": 500}\n\n', [None]),
    ("data error", EVENTS, 'data: {"error": {"message": "engine died", "code": 500}}\n\n', "APIError"),
]


class Handler(http.server.BaseHTTPRequestHandler):
    row = ROWS[0]

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        _, content_type, body, _ = self.row
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def texts(client):
    """Return the text of each chunk, None for one without choices, or the name of the exception."""
    try:
        stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
        return [chunk.choices[0].delta.content if chunk.choices else None for chunk in stream]
    except openai.APIError as error:
        return type(error).__name__


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none", max_retries=0)
changed = 0
for row in ROWS:
    Handler.row = row
    found = texts(client)
    print(f"{row[0]}: {found}")
    changed += found != row[3]
raise SystemExit(f"changed: {changed} rows" if changed else 0)
PYTHON
"$folder/venv/bin/python" "$folder/ask.py"
# Output seen:
# cut after an event: ['half of']
# empty stream: []
# no stream: []
# event error: [None]
# data error: APIError
