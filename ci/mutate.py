"""ci/mutate.py COMMIT...: whether the tests notice small faults: one line changed at a time, in templates and planner.

The lines are chosen once, with a fixed seed, among those that are in every commit named, and kept in
ci/mutations/lines.json; so commits are compared by the same lines, whatever files they are in. Each change runs the
tests that cover the file, in one process, until one fails. ci/mutations/result.json keeps each outcome with a checksum
of its inputs: a run that was interrupted continues where it was.

It works in a git worktree of each commit, so the checkout is not touched. `make verify-mutations` takes about an hour.
"""

import argparse
import ast
import hashlib
import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "ci" / "mutations"
LINES = FOLDER / "lines.json"
RESULT = FOLDER / "result.json"
SEED = 14
LINES_OF_A_KIND = 10
LIMIT_SECONDS = 1800

SOURCES = {
    "template": ("charts/*/templates/**/*", "charts/*/validate/**/*"),
    "planner": ("python/src/rayhelm/planner/**/*.py",),
}
GENERATED = ("_defaults.tpl", "_rules.tpl", "__init__.py", "NOTES.txt")
SWAPS = {
    "template": [
        (r"\beq\b", "ne"), (r"\bne\b", "eq"), (r"\band\b", "or"), (r"\bor\b", "and"), (r"\bgt\b", "le"),
        (r"\blt\b", "ge"),
        (r"\bif not (?=[.$])", "if "), (r"\bif (?=[.$][\w.$]+ -?\}\})", "if not "),
        (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
        (r"\bmul\b", "add"), (r"\badd\b", "sub"), (r"(?<=: )\d+$", "7"),
    ],
    "planner": [
        (r" <= ", " < "), (r" >= ", " > "), (r" < ", " <= "), (r" > ", " >= "), (r" == ", " != "), (r" != ", " == "),
        (r" and ", " or "), (r" or ", " and "), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" // ", " * "),
        (r" / ", " * "), (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\bif not ", "if "), (r"\bTrue\b", "False"),
        (r"\bFalse\b", "True"), (r"\bceil\(", "int("),
    ],
}  # fmt: skip
"""What a fault replaces, and by what: the first that a line has, out of a random order."""


@dataclass(frozen=True)
class Mutation:
    """A line, and what it becomes. Both without indentation; a line is deleted where `mutated` is empty."""

    kind: str
    line: str
    mutated: str

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.kind}\0{self.line}\0{self.mutated}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Place:
    """Where a line is in one commit."""

    path: Path
    number: int


# -- choice of lines ---------------------------------------------------------------------------------------------------


def source_files(tree: Path, kind: str) -> list[Path]:
    found = {path for pattern in SOURCES[kind] for path in tree.glob(pattern)}
    return sorted(path for path in found if path.is_file() and path.name not in GENERATED)


def places(tree: Path, kind: str) -> dict[str, Place]:
    """Return lines that a tree has exactly once, by their text."""
    found = [
        (line.strip(), Place(path, number))
        for path in source_files(tree, kind)
        for number, line in enumerate(path.read_text().splitlines())
    ]
    count = Counter(text for text, _ in found)
    return {text: place for text, place in found if count[text] == 1}


def choose(trees: list[Path]) -> list[Mutation]:
    """Return the same lines for the same trees."""
    chosen: list[Mutation] = []
    for kind in SOURCES:
        rng = random.Random(f"{SEED} {kind}")
        known = [places(tree, kind) for tree in trees]
        lines = sorted(set.intersection(*(set(each) for each in known)))
        rng.shuffle(lines)
        found = (mutation for line in lines if (mutation := mutated(kind, line, rng, [each[line] for each in known])))
        chosen += [mutation for mutation, _ in zip(found, range(LINES_OF_A_KIND), strict=False)]
    return chosen


def mutated(kind: str, line: str, rng: random.Random, where: list[Place]) -> Mutation | None:
    """Return a fault in a line that does something; None where there is none to make."""
    if len(line) < 12 or line.startswith(("#", "{{/*", "{{- /*", '"""', "@", "import ", "from ", "def ", "class ")):
        return None
    swaps = list(SWAPS[kind])
    rng.shuffle(swaps)
    for pattern, replacement in swaps:
        changed = re.sub(pattern, replacement, line, count=1)
        if changed != line:
            mutation = Mutation(kind, line, changed)
            break
    else:
        mutation = Mutation(kind, line, "")
    return mutation if all(is_possible(mutation, place) for place in where) else None


def is_possible(mutation: Mutation, place: Place) -> bool:
    """Return whether it changes what the program does, and leaves it a program: faults of syntax say nothing about
    tests."""
    if mutation.kind == "template":
        return not is_in_comment(place) and (is_in_action(mutation) if mutation.mutated else is_plain_key(mutation))
    try:
        before, after = (ast.parse(text) for text in (place.path.read_text(), with_fault(mutation, place)))
    except SyntaxError:
        return False
    if not mutation.mutated and mutation.line.startswith("yield"):
        return False
    if not mutation.mutated:  # without its assignment a name is an error, which every test notices
        return any(
            isinstance(node, ast.Expr | ast.AugAssign | ast.Raise)
            and node.lineno - 1 == place.number == node.end_lineno - 1
            for node in ast.walk(before)
            if isinstance(node, ast.stmt) and node.end_lineno
        )
    return without_prose(before) != without_prose(after)


def is_in_action(mutation: Mutation) -> bool:
    """Return whether the change is in what Helm executes, outside of strings."""
    actions = (re.findall(r"\{\{.*?\}\}", re.sub(r'"[^"]*"', "", text)) for text in (mutation.line, mutation.mutated))
    numbers = (re.findall(r"^[\w.-]+: (?:\d+|true|false)$", text) for text in (mutation.line, mutation.mutated))
    return len({tuple(each) for each in actions}) == 2 or len({tuple(each) for each in numbers}) == 2


def is_plain_key(mutation: Mutation) -> bool:
    """Return whether a line is a key with its value, so that the rest is YAML without it."""
    return bool(re.fullmatch(r"[\w./-]+: [^|>]+", mutation.line)) and ":=" not in mutation.line


def without_prose(tree: ast.AST) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def is_in_comment(place: Place) -> bool:
    before = "\n".join(place.path.read_text().splitlines()[: place.number])
    return before.rfind("/*") > before.rfind("*/")


def with_fault(mutation: Mutation, place: Place) -> str:
    lines = place.path.read_text().splitlines()
    old = lines[place.number]
    indent = old[: len(old) - len(old.lstrip())]
    deleted = "pass" if mutation.kind == "planner" else ""
    lines[place.number] = indent + (mutation.mutated or deleted)
    return "\n".join(lines) + "\n"


# -- one fault ---------------------------------------------------------------------------------------------------------


def covering_tests(tree: Path, kind: str, path: Path) -> list[str]:
    """Return test files that read the changed file, those that compare most first."""
    if kind == "planner":
        pattern = re.compile(r"rayhelm\.planner|rayhelm\.deploy\.render|import run\b|fleets import|small_fleet import")
        files = [
            file
            for folder in ("planner", "deploy", "cli", "check", "live", "run")
            for file in tree.glob(f"tests/{folder}/test_*.py")
            if pattern.search(file.read_text())
        ]
        first = r"test_(planner|fit|memory|layout|sharing|scaling|reference_fleets)"
    else:
        chart = path.relative_to(tree / "charts").parts[0]
        name = chart.replace("-", "_")
        pattern = re.compile(rf"test_({name}_|each_chart|every_value|fleet_releases)" if chart != "lib" else "test_")
        files = [file for file in tree.glob("tests/charts/test_*.py") if pattern.match(file.name)]
        files += tree.glob("tests/gateway/test_*.py") if chart == "gateway" else []
        first = r"test_\w*(render|each_chart\w*values|parts|serve|scaling|config|metrics|policies|gpus)"
    return [
        str(file.relative_to(tree))
        for file in sorted(files, key=lambda file: (not re.match(first, file.name), "every_value" in file.name, file))
    ]


def run_tests(tree: Path, tests: list[str], deselected: list[str]) -> tuple[str, float]:
    """Return the first test that failed, empty where none did, and the seconds. No test is over in no time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not serve", "--tb=line"]
    command += [f"--deselect={test}" for test in deselected]
    environment = os.environ | {"PYTHONPATH": f"{tree}/python/src:{tree}"}
    begin = time.monotonic()
    try:
        ended = subprocess.run(
            [*command, *tests], cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end after {LIMIT_SECONDS} s", time.monotonic() - begin
    failed = re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", ended.stdout, re.MULTILINE)
    if ended.returncode not in (0, 1, 2) or (ended.returncode and not failed):
        raise RuntimeError(f"pytest ended with {ended.returncode}:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return (failed[0] if failed else ""), time.monotonic() - begin


def try_fault(tree: Path, mutation: Mutation, place: Place, tests: list[str]) -> dict[str, object]:
    """Return the outcome of one fault. A test that fails without it too is left out."""
    original = place.path.read_text()
    deselected: list[str] = []
    while True:
        place.path.write_text(with_fault(mutation, place))
        try:
            failed, seconds = run_tests(tree, tests, deselected)
        finally:
            place.path.write_text(original)
        if failed and "::" in failed and run_tests(tree, [failed], [])[0]:
            deselected.append(failed)
            continue
        return {"noticed": bool(failed), "by": failed, "seconds": round(seconds, 1), "left_out": deselected}


# -- commits -----------------------------------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def tree_of(commit: str) -> Path:
    """Return a worktree in .cache/mutate, with this checkout's tools."""
    tree = ROOT / ".cache" / "mutate" / commit
    if not tree.exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", str(tree), commit)
    subprocess.run(["git", "-C", str(tree), "checkout", "--quiet", "--force", commit], check=True)
    for name in (".tools", ".venv"):
        if not (tree / name).exists():
            (tree / name).symlink_to(ROOT / name)
    return tree


def checksum_of_inputs(tree: Path, mutation: Mutation, place: Place, tests: list[str]) -> str:
    content = [mutation.key.encode(), place.path.read_bytes(), *((tree / test).read_bytes() for test in tests)]
    return hashlib.sha256(b"\0".join(content)).hexdigest()[:16]


def outcomes(commit: str, mutations: list[Mutation], known: dict[str, dict[str, object]]) -> Iterator[None]:
    """Fill in what `known` lacks, and stop after each."""
    tree = tree_of(commit)
    where = {kind: places(tree, kind) for kind in SOURCES}
    for mutation in mutations:
        if not (place := where[mutation.kind].get(mutation.line)):
            known[mutation.key] = {"noticed": None, "by": "the line is not in this commit"}
            continue
        tests = covering_tests(tree, mutation.kind, place.path)
        inputs = checksum_of_inputs(tree, mutation, place, tests)
        if known.get(mutation.key, {}).get("inputs") == inputs:
            continue
        outcome = try_fault(tree, mutation, place, tests)
        file = str(place.path.relative_to(tree))
        known[mutation.key] = {"file": file, **outcome, "inputs": inputs, "test_files": len(tests)}
        print(
            f"{commit} {file}: {mutation.line[:60]!r} -> {mutation.mutated[:60]!r}: {known[mutation.key]}", flush=True
        )
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether the tests notice small faults.")
    parser.add_argument("commits", nargs="+", metavar="COMMIT")
    commits = [git("rev-parse", "--short=12", name) for name in parser.parse_args().commits]
    os.nice(10)
    FOLDER.mkdir(exist_ok=True)
    if not LINES.exists():
        mutations = choose([tree_of(commit) for commit in commits])
        LINES.write_text(json.dumps({"seed": SEED, "lines": [asdict(each) for each in mutations]}, indent=1) + "\n")
    mutations = [Mutation(**each) for each in json.loads(LINES.read_text())["lines"]]
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"commits": {}}
    versions = {"python": platform.python_version(), "pytest": __import__("pytest").__version__}
    for commit in commits:
        about = result["commits"].setdefault(commit, {"outcomes": {}})
        about |= {"versions": versions, "lines": len(mutations)}
        for _ in outcomes(commit, mutations, about["outcomes"]):
            RESULT.write_text(json.dumps(result, indent=1) + "\n")
        found = [about["outcomes"][each.key] for each in mutations]
        about["noticed"] = sum(each["noticed"] is True for each in found)
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{commit}: {about['noticed']} of {len(mutations)} noticed")


if __name__ == "__main__":
    main()
