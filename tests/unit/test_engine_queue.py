"""How many replicas the engines' own figures ask for: the decision, and how Prometheus' answers are read. Both pure."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from rayhelm.runtime.engine_queue.decision import Memory, Seen, Settings, decide
from rayhelm.runtime.engine_queue.signals import Queries, in_time, known, waiting

SETTINGS = Settings(target=10)
CALM = Seen(now=1000, ongoing=20, running=2, wanted=2, waiting=0, in_time=1.0)
"""Two replicas, each with as many requests as the plan aims at."""


BEFORE = Memory(at=0)
"""Nothing was corrected so far."""


def decided(seen, memory=BEFORE):
    return decide(seen, memory, SETTINGS)


@pytest.mark.parametrize(
    ("situation", "seen", "replicas"),
    [
        ("as planned", CALM, 2),
        ("more requests than two replicas are for", replace(CALM, ongoing=31, in_time=None), 4),
        ("much more: at most twice as many in one step", replace(CALM, ongoing=200), 4),
        ("one replica may always be added", replace(CALM, ongoing=50, running=1, wanted=1), 2),
        ("a little less: no replica is given up", replace(CALM, ongoing=9.5), 2),
        ("nine tenths of one replica: one suffices", replace(CALM, ongoing=9), 1),
        ("much less: at most half are given up in one step", replace(CALM, ongoing=1, running=9, wanted=9), 4),
        ("nothing at all", replace(CALM, ongoing=0, in_time=None), 1),
        ("nothing at all on the last replica", replace(CALM, ongoing=0, running=1, wanted=1, in_time=None), 0),
        ("no replica serves yet", replace(CALM, running=0, wanted=3, ongoing=100), 3),
        ("few requests, but they wait in the engines", replace(CALM, ongoing=18, waiting=5), 3),
        ("few requests, but first tokens come late", replace(CALM, ongoing=18, in_time=0.9), 3),
        ("few requests, in time but for the goal's share", replace(CALM, ongoing=18, in_time=0.96), 2),
        ("late while another replica loads", replace(CALM, ongoing=19, wanted=3, waiting=5), 3),
        ("an idle engine has no series", replace(CALM, ongoing=9, waiting=0, in_time=None), 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_seen_decides(situation, seen, replicas):
    assert decided(seen).replicas == replicas


@pytest.mark.parametrize(("ongoing", "replicas"), [(0, 0), (1, 1), (20, 2), (21, 3), (205, 21)])
def test_without_prometheus_it_is_rays_own_rule(ongoing, replicas):
    silent = replace(CALM, ongoing=ongoing, waiting=None, in_time=None)
    decision = decided(silent, Memory(correction=0.4, at=0.0))
    assert decision.replicas == replicas
    assert decision.memory == Memory(correction=0.4, at=0.0)


def test_a_silent_prometheus_is_no_reason_to_go_to_zero():
    assert decided(replace(CALM, waiting=None, in_time=None)).replicas == 2


def test_an_engine_that_queues_at_few_requests_lowers_the_target():
    decision = decided(replace(CALM, ongoing=16, waiting=5))
    assert decision.memory == Memory(correction=0.85, at=1000)
    assert decided(replace(CALM, ongoing=18, waiting=5)).replicas == 3


def test_the_target_is_lowered_by_steps_and_not_below_its_bound():
    memory, seen = BEFORE, replace(CALM, ongoing=1, in_time=0.0)
    for turn in range(1, 10):
        memory = decided(replace(seen, now=1000 + 150.0 * turn), memory).memory
        assert memory.correction >= SETTINGS.least
        assert memory.correction >= SETTINGS.tighten**turn
    assert memory.correction == SETTINGS.least


def test_the_target_is_raised_while_full_replicas_are_in_time_and_not_above_its_bound():
    memory, seen = BEFORE, replace(CALM, ongoing=25)
    for turn in range(1, 20):
        memory = decided(replace(seen, now=1000 + 150.0 * turn), memory).memory
    assert memory.correction == SETTINGS.most
    assert decided(seen, memory).replicas == 2


@pytest.mark.parametrize(
    ("why", "seen"),
    [
        ("it was corrected a moment ago", replace(CALM, now=1149, ongoing=16, waiting=5)),
        ("the rule itself asks for more", replace(CALM, now=1150, ongoing=25, waiting=5)),
        ("half-empty replicas in time say nothing", replace(CALM, now=1150, ongoing=10)),
        ("few first tokens say nothing", replace(CALM, now=1150, in_time=None)),
        ("nobody tells of the queue", replace(CALM, now=1150, waiting=None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_is_learned_where(why, seen):
    memory = Memory(correction=1.0, at=1000)
    assert decided(seen, memory).memory == memory


def test_what_loads_is_waited_for_and_seen_before_anything_is_learned():
    loading = replace(CALM, now=1150, ongoing=16, wanted=3, waiting=5)
    assert decided(loading, Memory(at=1000)).memory == Memory(correction=1.0, at=1150)


def test_the_first_look_learns_nothing():
    assert decided(replace(CALM, ongoing=16, waiting=5), Memory()).memory == Memory(correction=1.0, at=1000)


def test_lateness_alone_keeps_no_replica():
    """Bursts that are over before a replica has loaded make requests late whatever is kept: it cost twice the cards."""
    late = replace(CALM, ongoing=5, running=4, wanted=4, in_time=0.5)
    assert decided(late, Memory(at=999.0)).replicas == 2


def test_a_load_between_two_counts_does_not_flap():
    """What grew to three replicas stays at three until two would be filled to nine tenths."""
    two = replace(CALM, in_time=None)
    assert decided(replace(two, ongoing=20.5)).replicas == 3
    three = replace(two, running=3, wanted=3)
    assert [decided(replace(three, ongoing=load)).replicas for load in (20, 19, 18.1, 18)] == [3, 3, 3, 2]


# -- what Prometheus says --------------------------------------------------------------------------------------------


@dataclass
class Answer:
    samples: list = field(default_factory=list)


def answer(*samples):
    return Answer([SimpleNamespace(labels=labels, value=value) for labels, value in samples])


def buckets(replica, **counts):
    bounds = {"half": "0.5", "one": "1.0", "more": "2.5", "all": "+Inf"}
    return [({"ReplicaId": replica, "le": bounds[name]}, count) for name, count in counts.items()]


def test_engines_that_are_absent_wait_for_nothing_and_others_do_not_count():
    told = answer(({"ReplicaId": "mine"}, 3.0), ({"ReplicaId": "another's"}, 7.0))
    assert waiting(told, {"mine", "idle"}) == 3
    assert waiting(answer(), {"idle"}) == 0
    assert waiting(None, {"mine"}) is None


@pytest.mark.parametrize(
    ("target", "share"), [(0.5, 0.5), (1.0, 0.8), (0.75, 0.65), (2.5, 0.9), (9.0, 0.9), (0.25, 0.25)]
)
def test_the_share_in_time_is_read_between_the_bounds(target, share):
    told = answer(*buckets("a", half=30, one=50, more=60, all=60), *buckets("b", half=20, one=30, more=30, all=40))
    assert in_time(told, {"a", "b"}, target, at_least=20) == pytest.approx(share)


def test_few_first_tokens_are_no_share():
    told = answer(*buckets("a", half=1, one=1, more=1, all=19))
    assert in_time(told, {"a"}, 1.0, at_least=20) is None
    assert in_time(told, {"a"}, 1.0, at_least=19) == pytest.approx(1 / 19)
    assert in_time(answer(), {"a"}, 1.0, at_least=0) is None
    assert in_time(None, {"a"}, 1.0, at_least=0) is None


def test_a_cluster_that_nobody_scrapes_is_not_known():
    assert known(answer(({}, 2.0)))
    assert not known(answer())
    assert not known(answer(({}, 0.0)))
    assert not known(None)


def test_every_query_asks_for_one_ray_cluster_alone():
    queries = Queries("session_1").all
    assert len(set(queries)) == 3
    assert all(query.count('{SessionName="session_1"}') == 1 for query in queries)
