"""A cluster that is no testbed: an API server with its controllers and scheduler, as kind or a cloud would bring it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from pykube import HTTPClient, KubeConfig

from cluster.kit.cluster import Cluster
from cluster.kit.place import Testbed, surroundings
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import find_free_port
from testbed.control_plane import ControlPlane, core, down, home
from testbed.control_plane.home import Home, Record
from testbed.control_plane.programs import Programs
from testbed.tools import missing, program

__all__ = ["Bare", "bare", "cluster_of", "needs_own_control_plane"]

NO_PROGRAMS = "no control plane of our own: `make tools` builds its programs"


class Bare:
    """A cluster that others run, as far as a testbed can tell."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.kubeconfig: Path = plane.home.kubeconfig
        self.kubectl = Kubectl(program("kubectl"), self.kubeconfig)

    def apply(self, *objects: dict[str, Any]) -> None:
        """As a user other than the testbed."""
        self.kubectl("apply", "--server-side", "--filename=-", text=yaml.safe_dump_all(objects))

    def delete(self, *objects: dict[str, Any]) -> None:
        self.kubectl("delete", "--ignore-not-found", "--filename=-", text=yaml.safe_dump_all(objects))

    def names(self, kinds: str, *options: str) -> set[str]:
        return set(self.kubectl("get", kinds, "--output=name", *options).split())


def needs_own_control_plane() -> None:
    """Skips where its programs are not here: who tests on kind has built only what joins a cluster."""
    if {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} & set(missing()):
        pytest.skip(NO_PROGRAMS)


@contextmanager
def bare(name: str) -> Iterator[Bare]:
    """One of its own for as long as the block runs."""
    needs_own_control_plane()
    place = home(f"{name}-{os.getpid()}")
    programs = Programs.find(join=False)
    taken: set[int] = set()
    place.write(Record(kubernetes=programs.kubernetes, kuberay="", server=f"https://127.0.0.1:{find_free_port(taken)}"))
    try:
        plane = ControlPlane(place)
        core.start_api_server(plane, programs, taken, lambda line: None)
        core.start_controllers(plane, programs, taken)
        core.wait_for_controllers(plane, programs)
        yield Bare(plane)
    finally:
        down(place)


@contextmanager
def cluster_of(place: Home) -> Iterator[Cluster]:
    """The API server of a testbed that a test has made itself."""
    plane = ControlPlane(place)
    api = HTTPClient(KubeConfig.from_file(str(place.kubeconfig)))
    there = Testbed(place.kubeconfig, plane.record.kuberay, plane)
    try:
        with surroundings(place.kubeconfig):
            yield Cluster(api, there)
    finally:
        there.close()
        api.session.close()
