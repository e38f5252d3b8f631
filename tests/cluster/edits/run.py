"""Make edits on many RayServices at the same time; each waits only for the operator."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from cluster.edits.observation import EditCase, Observation, OperatorState
from cluster.edits.operators import PART, OperatorManager, manage_operators
from cluster.edits.reconcile_log import ReconcileLog
from cluster.edits.recorder import Recorder
from cluster.edits.service import EditedService, EditNamespace
from cluster.edits.template import build_nodes, build_objects
from cluster.kit.cluster import Cluster
from cluster.kit.wait import eventually

__all__ = ["EditResults", "run"]

EditResults = dict[str, Observation | Exception]
"""By the id of the edit."""


def run(edits: Sequence[EditCase], cluster: Cluster, other: Path | None) -> EditResults:
    """Return what the operator did with each edit. Edits that need another operator are left out if there is none."""

    def select(*where: OperatorState) -> list[EditCase]:
        return [edit for edit in edits if edit.operator in where]

    with (
        cluster.machines(build_nodes(len(edits))),
        manage_operators(cluster, other) as found,
        _place(cluster) as place,
        ThreadPoolExecutor(len(edits) + 1) as pool,
    ):
        edit_run = EditRun(place, pool)
        edit_run.create(select("runs", "restarts", *(["other takes over"] if other else [])))
        edit_run.while_it_runs("runs")
        edit_run.while_it_is_down("restarts", found, found.start_ours)
        if other:
            edit_run.while_it_is_down("other takes over", found, found.start_other)
            edit_run.create(select("takes over from other"))
            edit_run.while_it_is_down("takes over from other", found, found.start_ours)
        return edit_run.results


class EditRun:
    """The RayServices of a namespace."""

    def __init__(self, place: EditNamespace, pool: ThreadPoolExecutor) -> None:
        self._place, self._pool = place, pool
        self._services: list[EditedService] = []
        self._ready: dict[str, Future[None]] = {}
        self.results: EditResults = {}

    def create(self, edits: Sequence[EditCase]) -> None:
        """Create a RayService per edit, and prepare each in the background."""
        if not edits:
            return
        services = [EditedService(edit, self._place) for edit in edits]
        cluster, names = self._place.cluster, [service.name for service in services]
        cluster.apply(*build_objects(cluster, names), namespace=self._place.namespace)
        self._services += services
        self._ready |= {service.edit.id: self._pool.submit(service.prepare) for service in services}

    def while_it_runs(self, operator: OperatorState) -> None:
        """Edit each RayService as soon as it is prepared."""

        def edit(service: EditedService) -> None:
            self._ready[service.edit.id].result()
            service.mark()
            service.make_steps(service.edit.steps)
            service.wait_until_reconciled()
            self.results[service.edit.id] = service.observe()

        self._each(operator, edit)

    def while_it_is_down(self, operator: OperatorState, operators: OperatorManager, start: Callable[[], None]) -> None:
        """Edit all RayServices between the stop of an operator and the start of the next."""

        def prepare(service: EditedService) -> None:
            self._ready[service.edit.id].result()
            service.wait_until_reconciled()  # the operator may have changed since
            service.mark()

        def note(service: EditedService) -> None:
            service.wait_until_reconciled()
            self.results[service.edit.id] = service.observe()

        if not self._each(operator, prepare):
            return
        operators.stop()
        self._each(operator, lambda service: service.make_steps_without_operator(service.edit.steps))
        start()
        self._each(operator, note)

    def _each(self, operator: OperatorState, work: Callable[[EditedService], None]) -> bool:
        """Run `work` for all services in parallel; a service that fails is left out later. False if there is none."""
        services = [item for item in self._services if item.edit.operator == operator]
        todo = {item.edit.id: self._pool.submit(work, item) for item in services if item.edit.id not in self.results}
        for id, done in todo.items():
            if error := done.exception():
                self.results[id] = RuntimeError(f"{id}: {error}")
        return bool(todo)


@contextmanager
def _place(cluster: Cluster) -> Iterator[EditNamespace]:
    log = ReconcileLog(cluster.place.plane.home.log(PART))
    with cluster.namespace() as name:
        recorder = Recorder(cluster.place.kubeconfig, name)
        try:
            yield EditNamespace(cluster, name, recorder, log)
        finally:
            recorder.end()
            # Before the namespace is deleted: the operator runs a Job there to clean up Redis. And before the nodes are
            # deleted: without them no pod ends.
            cluster.kubectl("delete", "rayservices", "--all", f"--namespace={name}", "--wait=false")
            for kind in ("RayCluster", "Pod"):
                eventually(lambda kind=kind: not cluster.all(kind, name), f"the end of each {kind} of {name}")
