"""Where the tests run: the testbed that KUBECONFIG names, or one of their own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from rayhelm.live.cluster.kubectl import Kubectl, KubectlError
from testbed.control_plane import ControlPlane, Home, down, home, up
from testbed.control_plane.addons import NAMESPACE
from testbed.ray_stand_in.client import RayStandIn
from testbed.tools import program

__all__ = ["NOT_OURS", "Testbed", "given", "own", "surroundings"]

NOT_OURS = "the API server was not started here, and cannot be ended here"


@dataclass(frozen=True)
class Testbed:
    """A cluster that tests may use as they like."""

    __test__ = False  # pytest would take it for a class of tests

    kubeconfig: Path
    kuberay: str
    """Version of its operator."""
    plane: ControlPlane
    """Its processes on this computer: all of them, or only the add-ons of a joined cluster."""

    @cached_property
    def ray(self) -> RayStandIn:
        """What answers in Ray's place."""
        return RayStandIn(self.plane.record.stand_in)

    def close(self) -> None:
        """The connections of this side."""
        if "ray" in vars(self):
            self.ray.close()

    @property
    def is_whole(self) -> bool:
        """Whether the API server is one of our processes too."""
        return "kube-apiserver" in self.plane.record.parts

    def must_be_whole(self) -> None:
        """Skips a test that ends the API server, where that is not one of our processes."""
        if not self.is_whole:
            pytest.skip(NOT_OURS)


def given(config: pytest.Config) -> Testbed | None:
    """The testbed that --kubeconfig or KUBECONFIG names; None where it names none, or a cluster that is none."""
    named = config.getoption("kubeconfig", None) or os.environ.get("KUBECONFIG", "")
    if not named or not Path(named).is_file() or "kubectl" in _missing():
        return None
    kubectl = Kubectl(program("kubectl"), Path(named))
    where = [f"--namespace={NAMESPACE}", "--output=jsonpath={.data.home}", "--request-timeout=60s"]
    try:
        mark = kubectl("get", "configmap", NAMESPACE, *where)
    except KubectlError:
        return None
    plane = ControlPlane(Home(Path(mark)))
    # A mark can be left of a testbed whose processes were ended while the cluster was away.
    return _of(plane) if mark and plane.home.record() else None


@contextmanager
def own() -> Iterator[Testbed]:
    """A testbed for this run alone."""
    place = home(f"tests-{os.getpid()}")
    try:
        yield _of(up(place, say=lambda line: None))
    finally:
        down(place)


@contextmanager
def surroundings(kubeconfig: Path) -> Iterator[None]:
    """The environment of clients. What kubectl and Helm remember of an API server goes when it goes, and does not stay
    in the user's home; Python's clients would ask a proxy also for loopback."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECACHEDIR", str(kubeconfig.parent / "cache"))
        for name in ("no_proxy", "NO_PROXY"):
            patch.setenv(name, "127.0.0.1,localhost", prepend=",")
        yield


def _of(plane: ControlPlane) -> Testbed:
    return Testbed(plane.home.kubeconfig, plane.record.kuberay, plane)


def _missing() -> list[str]:
    from testbed.tools import missing

    return missing()
