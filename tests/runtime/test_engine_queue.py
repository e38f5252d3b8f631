"""The EngineQueue policy: its decision, and its reading of Prometheus' answers."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from rayhelm.runtime.engine_queue.decision import Measurement, PolicyState, Settings, decide
from rayhelm.runtime.engine_queue.signals import Queries, is_scraped, share_in_time, sum_waiting

SETTINGS = Settings(target=10)
CALM = Measurement(now=1000, ongoing=20, running=2, target_replicas=2, waiting=0, in_time=1.0)
"""Two replicas with the planned number of requests."""


BEFORE = PolicyState(corrected_at=0)
"""No correction yet."""


def decided(seen, state=BEFORE):
    return decide(seen, state, SETTINGS)


@pytest.mark.parametrize(
    ("situation", "measurement", "replicas"),
    [
        ("as planned", CALM, 2),
        ("more requests than two replicas can take", replace(CALM, ongoing=31, in_time=None), 4),
        ("many more: at most doubled in one step", replace(CALM, ongoing=200), 4),
        ("one replica can always be added", replace(CALM, ongoing=50, running=1, target_replicas=1), 2),
        ("slightly fewer: no replica is removed", replace(CALM, ongoing=9.5), 2),
        ("90 % of one replica: one is enough", replace(CALM, ongoing=9), 1),
        ("many fewer: at most half are removed in one step", replace(CALM, ongoing=1, running=9, target_replicas=9), 4),
        ("no requests", replace(CALM, ongoing=0, in_time=None), 1),
        ("no requests on the last replica", replace(CALM, ongoing=0, running=1, target_replicas=1, in_time=None), 0),
        ("no running replica", replace(CALM, running=0, target_replicas=3, ongoing=100), 3),
        ("few requests, but they wait in the engines", replace(CALM, ongoing=18, waiting=5), 3),
        ("few requests, but first tokens come late", replace(CALM, ongoing=18, in_time=0.9), 3),
        ("few requests, in time within the goal", replace(CALM, ongoing=18, in_time=0.96), 2),
        ("late while another replica loads", replace(CALM, ongoing=19, target_replicas=3, waiting=5), 3),
        ("an idle engine has no series", replace(CALM, ongoing=9, waiting=0, in_time=None), 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_decide_returns_replicas(situation, measurement, replicas):
    assert decided(measurement).replicas == replicas


@pytest.mark.parametrize(("ongoing", "replicas"), [(0, 0), (1, 1), (20, 2), (21, 3), (205, 21)])
def test_decide_uses_the_rule_of_ray_without_metrics(ongoing, replicas):
    silent = replace(CALM, ongoing=ongoing, waiting=None, in_time=None)
    decision = decided(silent, PolicyState(correction=0.4, corrected_at=0.0))
    assert decision.replicas == replicas
    assert decision.state == PolicyState(correction=0.4, corrected_at=0.0)


def test_missing_metrics_do_not_scale_to_zero():
    assert decided(replace(CALM, waiting=None, in_time=None)).replicas == 2


def test_waiting_requests_lower_the_target():
    decision = decided(replace(CALM, ongoing=16, waiting=5))
    assert decision.state == PolicyState(correction=0.85, corrected_at=1000)
    assert decided(replace(CALM, ongoing=18, waiting=5)).replicas == 3


def test_target_is_lowered_in_steps_to_its_limit():
    state, seen = BEFORE, replace(CALM, ongoing=1, in_time=0.0)
    for turn in range(1, 10):
        state = decided(replace(seen, now=1000 + 150.0 * turn), state).state
        assert state.correction >= SETTINGS.min_correction
        assert state.correction >= SETTINGS.max_decrease**turn
    assert state.correction == SETTINGS.min_correction


def test_target_is_raised_to_its_limit_while_full_replicas_are_in_time():
    state, seen = BEFORE, replace(CALM, ongoing=25)
    for turn in range(1, 20):
        state = decided(replace(seen, now=1000 + 150.0 * turn), state).state
    assert state.correction == SETTINGS.max_correction
    assert decided(seen, state).replicas == 2


@pytest.mark.parametrize(
    ("why", "measurement"),
    [
        ("the last correction is recent", replace(CALM, now=1149, ongoing=16, waiting=5)),
        ("the rule itself adds replicas", replace(CALM, now=1150, ongoing=25, waiting=5)),
        ("replicas are half empty", replace(CALM, now=1150, ongoing=10)),
        ("too few first tokens", replace(CALM, now=1150, in_time=None)),
        ("no metrics of the queue", replace(CALM, now=1150, waiting=None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_correction_does_not_change(why, measurement):
    state = PolicyState(correction=1.0, corrected_at=1000)
    assert decided(measurement, state).state == state


def test_correction_waits_for_loading_replicas():
    loading = replace(CALM, now=1150, ongoing=16, target_replicas=3, waiting=5)
    assert decided(loading, PolicyState(corrected_at=1000)).state == PolicyState(correction=1.0, corrected_at=1150)


def test_first_decision_does_not_change_the_correction():
    assert decided(replace(CALM, ongoing=16, waiting=5), PolicyState()).state == PolicyState(
        correction=1.0, corrected_at=1000
    )


def test_late_tokens_alone_keep_no_replica():
    """Short bursts make requests late whatever the number of replicas; keeping them doubled the GPU hours."""
    late = replace(CALM, ongoing=5, running=4, target_replicas=4, in_time=0.5)
    assert decided(late, PolicyState(corrected_at=999.0)).replicas == 2


def test_load_between_two_counts_does_not_oscillate():
    """Three replicas stay until two would be at 90 % of the target."""
    two = replace(CALM, in_time=None)
    assert decided(replace(two, ongoing=20.5)).replicas == 3
    three = replace(two, running=3, target_replicas=3)
    assert [decided(replace(three, ongoing=load)).replicas for load in (20, 19, 18.1, 18)] == [3, 3, 3, 2]


# -- answers of Prometheus --------------------------------------------------------------------------------------------


@dataclass
class Answer:
    samples: list = field(default_factory=list)


def answer(*samples):
    return Answer([SimpleNamespace(labels=labels, value=value) for labels, value in samples])


def buckets(replica, **counts):
    bounds = {"half": "0.5", "one": "1.0", "more": "2.5", "all": "+Inf"}
    return [({"ReplicaId": replica, "le": bounds[name]}, count) for name, count in counts.items()]


def test_sum_waiting_counts_only_the_given_replicas():
    samples = answer(({"ReplicaId": "mine"}, 3.0), ({"ReplicaId": "another's"}, 7.0))
    assert sum_waiting(samples, {"mine", "idle"}) == 3
    assert sum_waiting(answer(), {"idle"}) == 0
    assert sum_waiting(None, {"mine"}) is None


@pytest.mark.parametrize(
    ("target", "share"), [(0.5, 0.5), (1.0, 0.8), (0.75, 0.65), (2.5, 0.9), (9.0, 0.9), (0.25, 0.25)]
)
def test_share_in_time_interpolates_between_bounds(target, share):
    samples = answer(*buckets("a", half=30, one=50, more=60, all=60), *buckets("b", half=20, one=30, more=30, all=40))
    assert share_in_time(samples, {"a", "b"}, target, at_least=20) == pytest.approx(share)


def test_share_in_time_is_none_for_few_tokens():
    samples = answer(*buckets("a", half=1, one=1, more=1, all=19))
    assert share_in_time(samples, {"a"}, 1.0, at_least=20) is None
    assert share_in_time(samples, {"a"}, 1.0, at_least=19) == pytest.approx(1 / 19)
    assert share_in_time(answer(), {"a"}, 1.0, at_least=0) is None
    assert share_in_time(None, {"a"}, 1.0, at_least=0) is None


def test_is_scraped_is_false_without_series():
    assert is_scraped(answer(({}, 2.0)))
    assert not is_scraped(answer())
    assert not is_scraped(answer(({}, 0.0)))
    assert not is_scraped(None)


def test_every_query_selects_one_ray_cluster():
    queries = Queries("session_1").all
    assert len(set(queries)) == 3
    assert all(query.count('{SessionName="session_1"}') == 1 for query in queries)
