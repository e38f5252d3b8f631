"""The answers of AIConfigurator, asked once: a run that was interrupted continues."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["PEER", "ask", "find_version"]

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".cache/estimates"
"""Python environment of the peer, created by benchmarks/estimates/peers."""
_KNOWN = PEER / "answers.jsonl"
"""Questions with their answers. It is in the environment, so another version asks again."""

Question = dict[str, Any]
Answer = dict[str, Any]


def ask(questions: Sequence[Question]) -> list[Answer]:
    """Return the answers in the order of the questions."""
    known = _read_known()
    new = list(dict.fromkeys(text for text in map(_write, questions) if text not in known))
    if new:
        asked, answered = PEER / "asked.jsonl", PEER / "answered.jsonl"
        asked.write_text("".join(f"{text}\n" for text in new))
        subprocess.run([PEER / "bin/python", Path(__file__).with_name("peer.py"), asked, answered], check=True)
        found = dict(zip(new, map(json.loads, answered.read_text().splitlines()), strict=True))
        with _KNOWN.open("a") as file:
            file.writelines(f"{json.dumps({'question': text, 'answer': answer})}\n" for text, answer in found.items())
        known |= found
    return [known[_write(question)] for question in questions]


def _read_known() -> dict[str, Answer]:
    lines = _KNOWN.read_text().splitlines() if _KNOWN.exists() else []
    return {each["question"]: each["answer"] for each in map(json.loads, lines)}


def _write(question: Question) -> str:
    return json.dumps(question, sort_keys=True)


def find_version() -> str:
    program = "import importlib.metadata as m; print(m.version('aiconfigurator'))"
    return subprocess.check_output([PEER / "bin/python", "-c", program], text=True).strip()
