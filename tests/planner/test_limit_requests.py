"""The most requests in flight that keep an objective: the search finds them exactly, with few estimates."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rayhelm.fleet.models import Slo
from rayhelm.planner.placement.capacity import limit_requests

OBJECTIVE = Slo.model_validate({"tpot": "100ms"})
CURVES: dict[str, Callable[[int], float]] = {
    "line": lambda requests: 0.02 + 0.0007 * requests,
    "convex": lambda requests: 0.02 + 4e-6 * requests**2,
    "concave": lambda requests: 0.012 * requests**0.45,
    "bent": lambda requests: 0.03 + 0.01 * max(requests - 90, 0),
    "jump": lambda requests: 0.05 if requests < 77 else 0.5,
    "always too slow": lambda requests: 0.2 + 0.001 * requests,
}


class Curve:
    """A replica whose time per output token is a function of the requests in flight."""

    def __init__(self, compute: Callable[[int], float]) -> None:
        self._compute = compute
        self.asked: set[int] = set()

    def at(self, requests: int) -> Any:
        self.asked.add(requests)
        return SimpleNamespace(link_use=0.0, tpot_high_s=self._compute(requests))


@pytest.mark.parametrize("most", [1, 2, 3, 100, 256, 1024])
@pytest.mark.parametrize("name", CURVES)
def test_most_requests_are_the_last_that_keep_the_objective(name: str, most: int) -> None:
    curve: Any = Curve(CURVES[name])
    found, bound_by = limit_requests(curve, OBJECTIVE, most, "max_num_seqs")
    kept = [each for each in range(1, most + 1) if CURVES[name](each) <= 0.1]
    assert found == max(kept, default=1)
    assert bound_by == ("max_num_seqs" if most in kept else "tpot objective")


def test_few_estimates_find_the_most_requests_on_a_line() -> None:
    curve: Any = Curve(CURVES["line"])
    limit_requests(curve, OBJECTIVE, 1024, "max_num_seqs")
    assert len(curve.asked) <= 5
