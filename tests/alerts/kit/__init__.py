"""Rules as chart platform renders them, against the real promtool.

rule_files() ──▶ run_cases(...) ──▶ promtool: which alerts fire over series that a case lists
"""

from alerts.kit.cases import LABELS, Case, Samples, case_of, check_rules, run_cases
from alerts.kit.render import VALUES, rule_files, rules_of

__all__ = ["LABELS", "VALUES", "Case", "Samples", "case_of", "check_rules", "rule_files", "rules_of", "run_cases"]
