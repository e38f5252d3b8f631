"""Place the models of a fleet: one by one, the largest first, then together where GPUs are scarce."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rayhelm.errors import Diagnostics, FleetError
from rayhelm.facts import Catalog
from rayhelm.facts.tensors import count_weights
from rayhelm.fleet.fleet import Fleet
from rayhelm.planner.explain.more_nodes import Shortage, add_nodes_for_all
from rayhelm.planner.explain.moves import explain_moves
from rayhelm.planner.explain.refusals import report_no_fit, report_no_room
from rayhelm.planner.explain.several_pools import report_no_room_together
from rayhelm.planner.explain.unreachable_slo import Missed, report_unreachable_slo
from rayhelm.planner.placement.allocate import allocate
from rayhelm.planner.placement.assignment import Assignment
from rayhelm.planner.placement.choose import Choice, Comparison, choose
from rayhelm.planner.placement.improve import improve
from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.placement.load_shares import PoolRoom, assign_shares, count_replicas, find_room
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.options import ModelOptions, PoolSplits

__all__ = ["list_placements"]


def list_placements(
    model_specs: Sequence[ResolvedModelSpec],
    inventories: Mapping[str, PoolInventory],
    fleet: Fleet,
    facts: Catalog,
) -> Iterator[Mapping[str, Choice]]:
    """Yield the best placement found, then the one that places the models one by one, if that is another one: a limit
    of a tenant or a label can forbid the first. The GPUs are allocated as in the placement that was yielded last.

    Raises FleetError with the problems of all models without a place."""
    first = _OneByOne(model_specs, inventories, fleet, facts)
    if first.found.problems:
        raise FleetError([*first.found.problems, *add_nodes_for_all([*first.without_room.values()])])
    improvable = {name for name in first.options if _may_improve(first.choices.get(name))}
    if not improvable:
        yield first.choices
        return
    chosen = {name: first.choices[name].candidate if name in first.choices else None for name in first.options}
    is_priced = any(each.by_price for each in first.options.values())
    assignment = Assignment(inventories, chosen, is_priced)
    moves = improve(assignment, first.options, first.groups, improvable)
    if unplaced := [name for name, candidate in assignment.candidates.items() if candidate is None]:
        raise FleetError(add_nodes_for_all([first.without_room[name] for name in unplaced]))
    if moves:
        yield explain_moves(first.choices, assignment.candidates, moves)
    if not first.without_room:
        assignment.restore()
        yield first.choices


def _may_improve(choice: Choice | None) -> bool:
    """Return whether a model may have a better candidate: one without room, or one that shares a GPU elsewhere."""
    return choice is None or choice.cramped is not None or choice.candidate.share < 1


class _OneByOne:
    """The placement of the models one by one: each takes the best candidate that the free GPUs hold."""

    def __init__(
        self,
        model_specs: Sequence[ResolvedModelSpec],
        inventories: Mapping[str, PoolInventory],
        fleet: Fleet,
        facts: Catalog,
    ) -> None:
        self.found = Diagnostics()
        """Problems of models that fit nowhere."""
        self.without_room: dict[str, Shortage] = {}
        """Problems of models that others leave no room for."""
        self.options: dict[str, ModelOptions] = {}
        self.groups: dict[str, frozenset[str]] = {}
        self.choices: dict[str, Choice] = {}
        self._facts = facts
        splits, clusters = PoolSplits(inventories), dict[frozenset[str], str]()
        divided: dict[str, ResolvedModelSpec | None] = {}
        for each in _sort_largest_first(model_specs):
            name, model_spec = each.name, each
            if each.declared.pools:
                if name not in divided:
                    divided |= self._divide(_list_parts(each, model_specs), splits)
                if not (part := divided[name]):
                    continue
                model_spec = part
            home = self.groups[name] = fleet.on_one_cluster_with(name)
            options = self.options[name] = ModelOptions(model_spec, splits, clusters.get(home))
            compared = choose(options)
            if compared.choice:
                candidate = compared.choice.candidate
                self.choices[name] = compared.choice
                allocate(candidate)
                clusters[home] = candidate.split.inventory.pool.cluster
            else:
                self._report(model_spec, options, compared)

    def _divide(self, parts: Sequence[ResolvedModelSpec], splits: PoolSplits) -> Mapping[str, ResolvedModelSpec | None]:
        """Return the parts of a model with `pools`, each with its share of the load; None for all if there is a
        problem."""
        rooms: list[PoolRoom] = []
        missed: list[Missed] = []
        refused: dict[str, ResolvedModelSpec | None] = dict.fromkeys(part.name for part in parts)
        for part in parts:
            options = ModelOptions(part, splits, None)
            compared = choose(options)
            if room := find_room(compared):
                rooms.append(room)
            elif compared.missing_slo and not compared.reachable:
                missed.append((part, compared.missing_slo))
            else:
                self._report(part, options, compared)
        if missed:
            self.found.add(report_unreachable_slo(missed))
        if len(rooms) < len(parts):
            return refused
        counts, left = count_replicas(rooms)
        if left or not all(counts):
            self.found.add([report_no_room_together(parts[0], rooms, left)])
            return refused
        return {part.name: part for part in assign_shares(parts, rooms, counts)}

    def _report(self, model_spec: ResolvedModelSpec, options: ModelOptions, compared: Comparison) -> None:
        if compared.reachable:
            self.without_room[model_spec.name] = report_no_room(model_spec, compared.reachable)
            return
        if compared.missing_slo:
            self.found.add(report_unreachable_slo([(model_spec, compared.missing_slo)]))
        else:
            step = partial(report_no_fit, model_spec, options.pools, compared.refused, self._facts)
            self.found.add(filter(None, [self.found.run(step)]))


def _list_parts(model_spec: ResolvedModelSpec, model_specs: Sequence[ResolvedModelSpec]) -> list[ResolvedModelSpec]:
    """Return the models of all `pools` of a model, in the order of the pools."""
    parts = {each.declared.pool: each for each in model_specs if each.written == model_spec.written}
    return [parts[pool] for pool in model_spec.declared.pools]


def _sort_largest_first(model_specs: Sequence[ResolvedModelSpec]) -> list[ResolvedModelSpec]:
    """Return models with a pinned pool first, then those with `pools`, then the others, and large models before small
    ones: those with the least choice first."""
    return sorted(
        model_specs,
        key=lambda model_spec: (
            model_spec.declared.pool is None,
            bool(model_spec.declared.pools),
            -count_weights(model_spec.model).bytes,
        ),
    )
