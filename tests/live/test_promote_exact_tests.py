"""The tests of shares against sums of exact fractions, and the power that the needed requests give."""

from fractions import Fraction
from math import comb

import pytest

from rayhelm.live.promotion.exact_tests import (
    LEAST_FAILURES,
    POWER,
    SIGNIFICANCE,
    binomial_tail,
    count_needed,
    hypergeometric_tail,
)

OBJECTIVES = [(0.0001, 0.0201), (0.001, 0.021), (0.01, 0.03), (0.05, 0.1), (0.15, 0.3)]
"""Allowed share, and the one that has to be found."""


def sum_binomial(failures: int, requests: int, share: Fraction) -> float:
    terms = (comb(requests, k) * share**k * (1 - share) ** (requests - k) for k in range(failures, requests + 1))
    return float(sum(terms, Fraction(0)))


def sum_hypergeometric(failures: int, requests: int, other_failures: int, other_requests: int) -> float:
    total = failures + other_failures
    terms = (
        Fraction(comb(requests, k) * comb(other_requests, total - k), comb(requests + other_requests, total))
        for k in range(failures, min(requests, total) + 1)
    )
    return float(sum(terms, Fraction(0)))


@pytest.mark.parametrize("share", [Fraction(1, 1000), Fraction(1, 20), Fraction(3, 10), Fraction(9, 10)])
@pytest.mark.parametrize("requests", [1, 2, 17, 60])
def test_binomial_tail_equals_the_sum_of_fractions(requests: int, share: Fraction) -> None:
    for failures in range(requests + 1):
        expected = sum_binomial(failures, requests, share)
        assert binomial_tail(failures, requests, float(share)) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("requests", "other_requests"), [(1, 1), (5, 40), (40, 5), (30, 30)])
def test_hypergeometric_tail_equals_the_sum_of_fractions(requests: int, other_requests: int) -> None:
    for failures in range(requests + 1):
        for other_failures in range(other_requests + 1):
            counts = (failures, requests, other_failures, other_requests)
            assert hypergeometric_tail(*counts) == pytest.approx(sum_hypergeometric(*counts), rel=1e-9)


def test_hypergeometric_tail_of_the_lady_tasting_tea() -> None:
    """Fisher's own example: 3 of 4 cups with milk first are found among 8."""
    assert hypergeometric_tail(3, 4, 1, 4) == pytest.approx(17 / 70)


@pytest.mark.parametrize(("counts", "tail"), [((0, 0, 0, 0), 1.0), ((0, 5, 3, 9), 1.0), ((3, 9, 0, 0), 1.0)])
def test_groups_without_failures_or_requests_differ_in_nothing(counts: tuple[int, int, int, int], tail: float) -> None:
    assert hypergeometric_tail(*counts) == tail


def test_tails_of_millions_of_requests_are_those_of_the_normal_distribution() -> None:
    """Two standard deviations above the mean: 2.28 %."""
    assert binomial_tail(500_000 + 1342, 5_000_000, 0.1) == pytest.approx(0.0228, abs=2e-4)
    assert hypergeometric_tail(100_600, 1_000_000, 99_400, 1_000_000) == pytest.approx(0.0023, abs=2e-4)


@pytest.mark.parametrize(("allowed", "found"), OBJECTIVES)
def test_needed_requests_have_the_power_and_one_less_does_not(allowed: float, found: float) -> None:
    needed = count_needed(allowed, found)
    assert find_power(needed - 1, allowed, found) < POWER
    assert all(find_power(requests, allowed, found) >= POWER for requests in range(needed, 3 * needed))


def find_power(requests: int, allowed: float, found: float) -> float:
    required = LEAST_FAILURES
    while binomial_tail(required, requests, allowed) > SIGNIFICANCE:
        required += 1
    return binomial_tail(required, requests, found)
