"""What applies to all tests: their order, the record of skips, and one cache of what helm renders."""

from pathlib import Path

import pytest

from shared.completed import CompletedLog, add_options, deselect_completed
from shared.helm_cache import HelmCache
from shared.skips import SkipWatch

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    HelmCache().install(config)
    if hasattr(config, "workerinput"):
        return
    if watch := SkipWatch.from_environment(ROOT):
        config.pluginmanager.register(watch)
    if path := config.getoption("--record-completed"):
        config.pluginmanager.register(CompletedLog(Path(path)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deselect_completed(config, items)
    # A slow test that starts last would leave all workers but one without work.
    items.sort(key=lambda item: (is_marked(item, "serve"), not is_marked(item, "slow")))


def is_marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None
