"""What applies to all tests: their order, the record of skips, and one cache of what helm renders."""

import gc
from collections.abc import Generator
from pathlib import Path

import pytest

from shared.completed import CompletedLog, add_options, deselect_completed
from shared.helm_cache import HelmCache
from shared.skips import SkipWatch

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)
    parser.getgroup("rayhelm").addoption("--record-refused", action="store_true", help="write refused-fleets.yaml")


def pytest_configure(config: pytest.Config) -> None:
    HelmCache().install(config)
    if hasattr(config, "workerinput"):
        return
    if watch := SkipWatch.from_environment(ROOT):
        config.pluginmanager.register(watch)
    if config.getoption("--record-refused"):
        from shared.refused_fleets import RefusalLog

        config.pluginmanager.register(RefusalLog())
    if path := config.getoption("--record-completed"):
        config.pluginmanager.register(CompletedLog(Path(path)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector: all that is collected lives until the end, and each pass would read it.

    This saves a third of the CPU time of the collection, which every xdist worker repeats."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # later passes skip these objects too
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """ci/run-tests finds these tests by the text of their files, and by their folder."""
    if is_marked(item, "serve") and "mark.serve" not in item.path.read_text():
        raise pytest.UsageError(f"{item.path}: write pytest.mark.serve into the file: ci/run-tests searches for it")
    if is_marked(item, "cluster") and ROOT / "tests" / "cluster" not in item.path.parents:
        raise pytest.UsageError(f"{item.path}: move it to tests/cluster, where ci/run-tests looks for it")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deselect_completed(config, items)
    # A slow test that starts last would leave all workers but one without work.
    items.sort(key=lambda item: (is_marked(item, "serve"), not is_marked(item, "slow")))


def is_marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None
