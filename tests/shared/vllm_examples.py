"""The fleets of docs/tasks/use-vllm-features.md: each block of models on a pool of its own."""

import re
from pathlib import Path

__all__ = ["EXAMPLES"]

_PAGE = Path(__file__).resolve().parents[2] / "docs/tasks/use-vllm-features.md"
_BASE = """\
fleet: examples
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
pools: {gpu: {gpu: H100-SXM-80GB, nodes: 1}}
"""

EXAMPLES = {
    re.findall(r"^  (\w+):$", block, re.MULTILINE)[0]: _BASE + block
    for block in re.findall(r"^```yaml\n(models:\n.*?)^```$", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
}
"""Text of a fleet file by the name of its model."""
