"""Backup and restore of Secrets, with the commands of docs/tasks/back-up-and-restore.md."""

import base64
import os
import re
import subprocess
from pathlib import Path

from cluster.kit.cluster import Cluster

PAGE = Path(__file__).parents[2] / "docs/tasks/back-up-and-restore.md"
KEYS = {
    "gateway-keys-apps": {"keys": f"{'0' * 64} ci\n{'1' * 64} ci-2 2027-01-31T00:00:00Z\n"},
    "gateway-remote-us": {"key": "a: 'b' \"c\" #d", "accepted": ""},
}


def run(block: str, namespace: str, folder: Path, kubeconfig: Path) -> None:
    text = block.replace("namespace=gateway", f"namespace={namespace}")
    words = ["bash", "-euc", f"namespace={namespace}\n{text}"]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_secrets_are_the_same_after_backup_deletion_and_restore(cluster: Cluster, tmp_path: Path) -> None:
    save, restore, *_ = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert "get secrets" in save
    assert "apply -f secrets.yaml" in restore
    with cluster.namespace(name="backup-of-keys") as namespace:
        for name, data in KEYS.items():
            cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": namespace, "labels": {"a": "b"}},
                    "stringData": data,
                }
            )
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "sh.helm.release.v1.gateway.v1", "namespace": namespace},
                "type": "helm.sh/release.v1",
                "stringData": {"release": "x"},
            }
        )
        run(save, namespace, tmp_path, cluster.place.kubeconfig)
        for name in KEYS:
            cluster.kubectl("delete", "secret", name, "--namespace", namespace)
        assert "sh.helm.release" not in (tmp_path / "secrets.yaml").read_text()
        run(restore, namespace, tmp_path, cluster.place.kubeconfig)
        for name, data in KEYS.items():
            found = cluster.find("Secret", name, namespace)
            assert found is not None
            read = {key: base64.b64decode(value).decode() for key, value in found.get("data", {}).items()}
            assert read == data
