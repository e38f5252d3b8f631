"""A stand-in for Vault and for the External Secrets operator: ExternalSecrets become Secrets with entries of a file.

`kv-put secret/PATH ENTRY=VALUE...`, for commands of pages: writes entries into the file that KV names.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rayhelm.live.cluster.kubectl import Kubectl, KubectlError

__all__ = ["external_secrets"]

Object = Mapping[str, Any]
Store = Mapping[str, Mapping[str, str]]
"""Entries by path, as in a Vault: `secret/ai/hub`."""

POLL = 2.0
"""Seconds between two looks at the API server."""


@contextmanager
def external_secrets(kubectl: Kubectl, file: Path) -> Iterator[None]:
    """Do the work of the operator for the block, with the entries in `file`. Its CRDs may be installed meanwhile."""
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(_run, kubectl, file, ended)
        try:
            yield
        finally:
            ended.set()
            running.result()


def _run(kubectl: Kubectl, file: Path, ended: threading.Event) -> None:
    while not ended.wait(POLL):
        try:
            stores = kubectl.get("clustersecretstores.external-secrets.io")["items"]
            items = kubectl.get("externalsecrets.external-secrets.io", "--all-namespaces")["items"]
            contents: Store = json.loads(file.read_text()) if file.exists() else {}
            for item in items:
                _reconcile(kubectl, item, {store["metadata"]["name"]: store for store in stores}, contents)
        except KubectlError:
            continue  # the CRDs are not there yet, or an object was removed meanwhile


def _reconcile(kubectl: Kubectl, item: Object, stores: Mapping[str, Object], contents: Store) -> None:
    """Write the Secret of an ExternalSecret, and its condition Ready, as the operator does."""
    try:
        entries = _read(item, stores, contents)
    except LookupError as error:
        _report(kubectl, item, "False", "SecretSyncedError", str(error.args[0]))
        return
    about, target = item["metadata"], item["spec"]["target"]
    owner = {key: item[key] for key in ("apiVersion", "kind")} | {key: about[key] for key in ("name", "uid")}
    if _is_reported(item, "True"):
        return
    kubectl.apply_objects(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": target["template"]["type"],
            "metadata": {"name": target["name"], "namespace": about["namespace"], "ownerReferences": [owner]},
            "stringData": entries,
        }
    )
    _report(kubectl, item, "True", "SecretSynced", "secret synced")


def _read(item: Object, stores: Mapping[str, Object], contents: Store) -> dict[str, str]:
    """Return the entries of a Secret. Raises LookupError with what the store does not have, or does not give."""
    wanted, namespace = item["spec"]["secretStoreRef"], item["metadata"]["namespace"]
    if wanted["kind"] != "ClusterSecretStore" or wanted["name"] not in stores:
        raise LookupError(f"could not get {wanted['kind']} {wanted['name']!r}")
    store = stores[wanted["name"]]["spec"]
    if not any(namespace in condition.get("namespaces", ()) for condition in store["conditions"]):
        raise LookupError(f"using cluster store {wanted['name']!r} is not allowed from namespace {namespace!r}")
    entries = {}
    for each in item["spec"]["data"]:
        path, entry = f"{store['provider']['vault']['path']}/{each['remoteRef']['key']}", each["remoteRef"]["property"]
        if entry not in contents.get(path, {}):
            raise LookupError(f"{path} has no {entry}")
        entries[each["secretKey"]] = contents[path][entry]
    return entries


def _is_reported(item: Object, ready: str) -> bool:
    status = item.get("status", {})
    current = status.get("syncedResourceVersion") == str(item["metadata"]["generation"])
    return current and any(each["status"] == ready for each in status.get("conditions", ()))


def _report(kubectl: Kubectl, item: Object, ready: str, reason: str, message: str) -> None:
    if _is_reported(item, ready):
        return
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": now}
    status = {
        "refreshTime": now,
        "syncedResourceVersion": str(item["metadata"]["generation"]),
        "conditions": [condition],
    }
    where = (item["metadata"]["name"], f"--namespace={item['metadata']['namespace']}", "--subresource=status")
    patch = json.dumps({"status": status})
    kubectl("patch", "externalsecrets.external-secrets.io", *where, "--type=merge", "--patch", patch)


def _put(file: Path, path: str, entries: list[str]) -> None:
    contents = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**contents, path: dict(entry.split("=", 1) for entry in entries)}))


if __name__ == "__main__":
    _put(Path(os.environ["KV"]), sys.argv[1], sys.argv[2:])
