"""Robust least squares of relative errors: positive coefficients with priors and lowest values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["Prior", "solve"]

Prior = tuple[float, float, float]
"""Expected value, standard deviation of its logarithm, lowest value."""
_OUTLIER = 0.15
"""Relative error from which a row counts linearly."""
_NOISE = 0.1
"""Relative error that is expected of a row."""
_STEPS = 300


def solve(
    rows: Sequence[Mapping[str, float]],
    measured: Sequence[float],
    weights: Sequence[float],
    priors: Mapping[str, Prior],
) -> dict[str, float]:
    """Return the coefficients whose weighted sum of terms has the smallest relative error (Levenberg-Marquardt)."""
    names = list(priors)
    terms, target = np.array([[row[name] for name in names] for row in rows]), np.array(measured)
    expected, spread, least = (np.array([priors[name][i] for name in names]) for i in range(3))
    problem = _Problem(terms, target, np.array(weights), np.log(expected), spread, np.log(np.maximum(least, 1e-9)))
    return dict(zip(names, np.exp(problem.descend()).tolist(), strict=True))


class _Problem:
    def __init__(self, terms: Any, target: Any, weights: Any, expected: Any, spread: Any, least: Any) -> None:
        self.terms, self.target, self.weights = terms, target, weights
        self.expected, self.spread, self.least = expected, spread, least

    def descend(self) -> Any:
        here, damping = self.expected.copy(), 1e-3
        loss = self._loss(here)
        for _ in range(_STEPS):
            there = self._step(here, damping)
            found = self._loss(there)
            if found >= loss:
                damping *= 4
                if damping > 1e8:
                    break
                continue
            here, damping = there, max(damping / 3, 1e-6)
            if loss - found < 1e-7:
                break
            loss = found
        return here

    def _loss(self, logs: Any) -> float:
        error = np.abs(np.log(self.terms @ np.exp(logs) / self.target))
        huber = np.where(error < _OUTLIER, error**2 / 2, _OUTLIER * (error - _OUTLIER / 2))
        return float((self.weights * huber).sum() / _NOISE**2 + (((logs - self.expected) / self.spread) ** 2).sum() / 2)

    def _step(self, logs: Any, damping: float) -> Any:
        scaled = self.terms * np.exp(logs)
        predicted = scaled.sum(axis=1)
        error = np.log(predicted / self.target)
        weight = self.weights * np.minimum(1, _OUTLIER / np.maximum(np.abs(error), 1e-9)) / _NOISE**2
        slope = scaled / predicted[:, None]
        gradient = (slope * weight[:, None]).T @ error + (logs - self.expected) / self.spread**2
        curvature = (slope * weight[:, None]).T @ slope + np.diag(1 / self.spread**2)
        damped = curvature + damping * np.diag(np.diag(curvature))
        free = ~((logs <= self.least + 1e-12) & (gradient > 0))
        step = np.zeros_like(logs)
        step[free] = np.linalg.solve(damped[np.ix_(free, free)], gradient[free])
        return np.maximum(logs - np.clip(step, -1, 1), self.least)
