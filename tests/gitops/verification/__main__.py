"""`python -m gitops.verification`: run Argo CD against the test control plane, and write what it did.

No result is committed yet: in trials the steps up to `revert_by_hand` passed, and the later ones were not reached."""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from pykube import HTTPClient, KubeConfig

from cluster.kit.cluster import Cluster
from cluster.kit.place import Testbed, own, surroundings
from gitops.verification.components import run_argocd
from gitops.verification.inputs import RESULT, compute_hash
from gitops.verification.repository import GitRepository
from gitops.verification.scenario import Scenario
from rayhelm.spec.load import load_fleet
from testbed.nodes import cpu_nodes, simulated, volumes
from testbed.tools.catalog import tool
from testbed.tools.checkout import HERE


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gitops.verification", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="time without a change")
    options = parser.parse_args()
    began = time.monotonic()
    steps: list[dict[str, object]] = []
    with own() as place, surroundings(place.kubeconfig), tempfile.TemporaryDirectory(prefix="argocd-") as folder:
        run(place, Path(folder), options.minutes, steps)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    result = {
        "commit": commit,
        "inputs": compute_hash(),
        "argo_cd": tool("argocd", HERE).version,
        "kuberay": place.kuberay,
        "seconds": round(time.monotonic() - began),
        "steps": steps,
    }
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {RESULT}")


def run(place: Testbed, folder: Path, minutes: float, steps: list[dict[str, object]]) -> None:
    cluster = Cluster(HTTPClient(KubeConfig.from_file(str(place.kubeconfig))), place)
    repository = GitRepository(folder)
    repository.render()
    loaded = load_fleet(repository.tree / "acme/fleet.yaml")
    machines = [*simulated(loaded), *cpu_nodes(3), *volumes(loaded, count=8)]
    with cluster.machines(machines), run_argocd(cluster, folder):
        scenario = Scenario(cluster, repository, steps)
        try:
            scenario.install()
            scenario.smoke_test()
            scenario.fail_a_model()
            scenario.revert_by_hand()
            scenario.stay_still(minutes)
            scenario.point_nowhere()
            scenario.remove_a_model()
        except BaseException:
            print(scenario.show())
            for log in sorted(folder.glob("*.log")):
                print(log.name, "\n".join(log.read_text().splitlines()[-25:]), sep="\n")
            raise


if __name__ == "__main__":
    main()
