"""rayhelm.runtime runs inside Ray, in images that have rayhelm and none of its requirements."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rayhelm.runtime

FOLDER = Path(rayhelm.runtime.__file__).parent
MODULES = sorted(FOLDER.rglob("*.py"))
IN_IMAGE = {
    *("ray", "starlette", "fastapi", "pydantic", "numpy", "torch", "transformers", "huggingface_hub", "av"),
    *("opentelemetry", "pyarrow"),
}
"""Packages that Ray Serve LLM and vLLM bring along."""


def imported(module: Path) -> Iterator[str]:
    """Names of all modules that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports could leave the package"
            yield node.module or ""
            if node.module == "rayhelm":
                yield from (f"rayhelm.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_runtime_module_imports_nothing_else_of_rayhelm(module: Path) -> None:
    ours = {name for name in imported(module) if name.partition(".")[0] == "rayhelm"}
    assert {name for name in ours if not name.startswith("rayhelm.runtime")} == set()


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_runtime_module_imports_only_packages_of_the_image(module: Path) -> None:
    packages = {name.partition(".")[0] for name in imported(module)} - set(sys.stdlib_module_names) - {"rayhelm"}
    assert packages <= IN_IMAGE


def test_rayhelm_package_imports_the_standard_library_alone() -> None:
    """`import rayhelm.runtime` also runs `rayhelm/__init__.py`."""
    code = (
        f"import sys; sys.path.insert(0, {str(FOLDER.parents[1])!r}); import rayhelm.runtime;"
        " print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'rayhelm'})"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() in ([], ["__main__"])
