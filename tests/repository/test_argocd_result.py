"""The committed result of `make verify-argocd` belongs to what is committed beside it."""

import json

from gitops.verification.inputs import RESULT, compute_digest
from gitops.verification.scenario import STEPS

RECORDED = json.loads(RESULT.read_text())


def test_argocd_result_belongs_to_the_present_inputs() -> None:
    assert RECORDED["inputs"] == compute_digest(), "make verify-argocd writes it again"


def test_argocd_result_has_every_step() -> None:
    assert tuple(dict.fromkeys(step["step"] for step in RECORDED["steps"])) == STEPS


def test_argocd_result_has_ten_quiet_minutes() -> None:
    (quiet,) = [step for step in RECORDED["steps"] if step["step"] == "stay_still"]
    assert quiet["minutes"] >= 10
    assert quiet["syncs"] == 0
    assert quiet["comparisons"] > 10 * quiet["applications"]
