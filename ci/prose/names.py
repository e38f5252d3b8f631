"""Check names in Python code: `python -m prose.names` from ci/, or `make prose`.

A class name means one thing in the package. A test's name has at most 80 characters and begins with its subject, not
with an article.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 80


def main() -> int:
    """Print each problem; 1 if there is one."""
    problems = [*find_repeated_classes(ROOT), *find_wrong_tests(ROOT)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def find_repeated_classes(root: Path) -> Iterator[str]:
    """Yield public classes of the package that have the same name."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in parse_files(root, "python/src"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"class {name} exists {len(found)} times: {', '.join(found)}"


def find_wrong_tests(root: Path) -> Iterator[str]:
    """Yield tests whose names are too long, or begin with an article."""
    for path, tree in (*parse_files(root, "tests"), *parse_files(root, "testbed/tests")):
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_") and len(node.name) > LONGEST:
                yield f"{path}:{node.lineno}: {node.name} has {len(node.name)} characters; at most {LONGEST}"
            if node.name.startswith(("test_a_", "test_an_", "test_the_")):
                yield f"{path}:{node.lineno}: {node.name} begins with an article: begin with the subject"


def parse_files(root: Path, folder: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield every Python file below a folder, with its path from the root."""
    for path in sorted((root / folder).rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_text())


if __name__ == "__main__":
    sys.exit(main())
