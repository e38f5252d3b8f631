"""Makes edits on many RayServices at once: each waits for the operator, and none for another one."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from cluster.edits.looks import Looks
from cluster.edits.operators import PART, Operators, operators
from cluster.edits.recorder import Recorder
from cluster.edits.service import Place, Service
from cluster.edits.template import machines, objects
from cluster.kit.cluster import Cluster
from cluster.kit.wait import eventually
from rayhelm.forecast.observed import Edit, Observed, Operator

__all__ = ["Results", "run"]

Results = dict[str, Observed | Exception]
"""By the id of the edit."""


def run(edits: Sequence[Edit], cluster: Cluster, other: Path | None) -> Results:
    """What the operator did with each. Edits that need another operator are left out where there is none."""

    def of(*where: Operator) -> list[Edit]:
        return [edit for edit in edits if edit.operator in where]

    with (
        cluster.machines(machines(len(edits))),
        operators(cluster, other) as found,
        _place(cluster) as place,
        ThreadPoolExecutor(len(edits) + 1) as pool,
    ):
        stage = Stage(place, pool)
        stage.make(of("runs", "restarts", *(["other takes over"] if other else [])))
        stage.while_it_runs("runs")
        stage.while_it_is_down("restarts", found, found.start_ours)
        if other:
            stage.while_it_is_down("other takes over", found, found.start_other)
            stage.make(of("takes over from other"))
            stage.while_it_is_down("takes over from other", found, found.start_ours)
        return stage.results


class Stage:
    """The RayServices of a place."""

    def __init__(self, place: Place, pool: ThreadPoolExecutor) -> None:
        self._place, self._pool = place, pool
        self._services: list[Service] = []
        self._ready: dict[str, Future[None]] = {}
        self.results: Results = {}

    def make(self, edits: Sequence[Edit]) -> None:
        """A RayService for each edit; they come to where the edit is made by themselves."""
        if not edits:
            return
        services = [Service(edit, self._place) for edit in edits]
        cluster, names = self._place.cluster, [service.name for service in services]
        cluster.apply(*objects(cluster, names), namespace=self._place.namespace)
        self._services += services
        self._ready |= {service.edit.id: self._pool.submit(service.prepare) for service in services}

    def while_it_runs(self, operator: Operator) -> None:
        """Edits each RayService as soon as that can be done."""

        def edit(service: Service) -> None:
            self._ready[service.edit.id].result()
            service.mark()
            service.do(service.edit.steps)
            service.rest()
            self.results[service.edit.id] = service.observed()

        self._each(operator, edit)

    def while_it_is_down(self, operator: Operator, operators: Operators, start: Callable[[], None]) -> None:
        """Edits them all between the end of an operator and the start of one."""

        def prepare(service: Service) -> None:
            self._ready[service.edit.id].result()
            service.rest()  # operators may have come and gone since
            service.mark()

        def note(service: Service) -> None:
            service.rest()
            self.results[service.edit.id] = service.observed()

        if not self._each(operator, prepare):
            return
        operators.end()
        self._each(operator, lambda service: service.do_unseen(service.edit.steps))
        start()
        self._each(operator, note)

    def _each(self, operator: Operator, work: Callable[[Service], None]) -> bool:
        """Side by side; one that fails is done with. False where there is none."""
        services = [item for item in self._services if item.edit.operator == operator]
        todo = {item.edit.id: self._pool.submit(work, item) for item in services if item.edit.id not in self.results}
        for id, done in todo.items():
            if error := done.exception():
                self.results[id] = RuntimeError(f"{id}: {error}")
        return bool(todo)


@contextmanager
def _place(cluster: Cluster) -> Iterator[Place]:
    looks = Looks(cluster.place.bed.home.log(PART))
    with cluster.namespace() as name:
        recorder = Recorder(cluster.place.kubeconfig, name)
        try:
            yield Place(cluster, name, recorder, looks)
        finally:
            recorder.end()
            # Before the namespace, in which the operator cleans up after Redis by a Job; and before the nodes, without
            # which no pod comes to its end.
            cluster.kubectl("delete", "rayservices", "--all", f"--namespace={name}", "--wait=false")
            for kind in ("RayCluster", "Pod"):
                eventually(lambda kind=kind: not cluster.all(kind, name), f"the end of each {kind} of {name}")
