#!/usr/bin/env bash
# kubernetes (Python client): the kind of patch that a list of JSON Patch operations is sent as.
#
# Software: kubernetes 37.0.2; 35.0.0 does the same.
# A good guess: a dict is a merge patch and a list of operations is a JSON Patch, for each kind of object.
# What happens: patch_namespaced_pod sends a list as application/json-patch+json. patch_namespaced_custom_object sends the same
# list as application/merge-patch+json, which by RFC 7386 asks for an object that is that list. 37.0.2 takes
# `_content_type="application/json-patch+json"` for it, 35.0.0 has no such argument.
# Why it matters: code that patches a Deployment with a list, for a test before a change or for one item of a list, does not
# work for a RayService, a RayCluster or any other custom object.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kubernetes==37.0.2

cat >"$folder/patch.py" <<'PYTHON'
import http.server
import threading

from kubernetes import client

OPERATIONS = [{"op": "replace", "path": "/metadata/labels/team", "value": "a"}]
OBJECT = {"metadata": {"labels": {"team": "a"}}}
RAY_SERVICE = ("ray.io", "v1", "default", "rayservices", "model")
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
sent = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_PATCH(self):
        self.rfile.read(int(self.headers["content-length"]))
        sent.append(self.headers["content-type"])
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
api = client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{server.server_port}"))
pods, custom = client.CoreV1Api(api), client.CustomObjectsApi(api)
ROWS = [
    ("Pod, list", lambda: pods.patch_namespaced_pod("model", "default", OPERATIONS), JSON_PATCH),
    ("RayService, object", lambda: custom.patch_namespaced_custom_object(*RAY_SERVICE, OBJECT), MERGE),
    ("RayService, list", lambda: custom.patch_namespaced_custom_object(*RAY_SERVICE, OPERATIONS), MERGE),
    (
        "RayService, list, _content_type",
        lambda: custom.patch_namespaced_custom_object(*RAY_SERVICE, OPERATIONS, _content_type=JSON_PATCH),
        JSON_PATCH,
    ),
]
changed = 0
for name, patch, expected in ROWS:
    patch()
    print(f"{name}: {sent[-1]}")
    changed += sent[-1] != expected
raise SystemExit(f"changed: {changed} rows" if changed else 0)
PYTHON
"$folder/venv/bin/python" "$folder/patch.py"
