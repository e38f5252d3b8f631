"""`make verify-argocd`: run Argo CD against the test control plane, and write what it did to ci/argocd/result.json.

CI does not build Argo CD. It checks that the result belongs to the present inputs:
tests/repository/test_argocd_result.py."""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from pykube import HTTPClient, KubeConfig

from cluster.kit.cluster import Cluster
from cluster.kit.place import Testbed, own, surroundings
from gitops.verification.components import run_argocd
from gitops.verification.inputs import RESULT, compute_digest
from gitops.verification.repository import GitRepository
from gitops.verification.scenario import Scenario, Steps
from rayhelm.fleet.load import load_fleet
from testbed.nodes import cpu_nodes, simulated, volumes
from testbed.tools.find import found

MINUTES = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gitops.verification", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time without a commit; less writes no result")
    options = parser.parse_args()
    began, digest = time.monotonic(), compute_digest()
    folder = tempfile.TemporaryDirectory(prefix="argocd-")
    with own() as place, closing(place), surroundings(place.kubeconfig), folder as name:
        steps = run(place, Path(name), options.minutes)
        kuberay = place.kuberay
    if options.minutes < MINUTES:
        print(f"not written: a trial of {options.minutes:g} minutes")
        return 0
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    programs = ("argocd", "argocd-redis", "kube-apiserver", "helm3")
    result = {
        "inputs": digest,
        "commit": commit,
        "versions": {"kuberay": kuberay, **{each: found(each).version for each in programs}},
        "seconds": round(time.monotonic() - began),
        "computer": f"{platform.machine()}, Python {platform.python_version()}",
        "steps": steps,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(f"written: {RESULT}")
    return 0


def run(place: Testbed, folder: Path, minutes: float) -> Steps:
    cluster = Cluster(HTTPClient(KubeConfig.from_file(str(place.kubeconfig))), place)
    repository = GitRepository(folder)
    repository.render()
    loaded = load_fleet(repository.tree / "acme/fleet.yaml")
    machines = [*simulated(loaded), *cpu_nodes(3), *volumes(loaded, count=8)]
    with cluster.machines(machines), run_argocd(cluster, folder) as controller:
        scenario = Scenario(cluster, repository, controller, minutes)
        try:
            scenario.run()
        except BaseException:
            print(scenario.show())
            for log in sorted(folder.glob("*.log")):
                print(log.name, "\n".join(log.read_text().splitlines()[-25:]), sep="\n")
            raise
        return scenario.steps


if __name__ == "__main__":
    sys.exit(main())
