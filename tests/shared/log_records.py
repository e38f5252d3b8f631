"""Records of a logger, however other code has configured it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["capture_records"]


class _Keeper(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def capture_records(name: str, level: int = logging.ERROR) -> Iterator[list[logging.LogRecord]]:
    """Yield the records of logger `name` from `level` on, as they come.

    pytest's `caplog` listens at the root logger. Ray Serve stops the propagation of its logger and removes its handlers
    when `ray.serve` is imported, so that with `caplog` the result depends on what ran before. Import it before the
    block.
    """
    logger, keeper = logging.getLogger(name), _Keeper()
    before = logger.level, logger.disabled
    logger.addHandler(keeper)
    logger.setLevel(level)
    logger.disabled = False
    try:
        yield keeper.records
        assert keeper in logger.handlers, f"the handlers of {name} were replaced meanwhile"
    finally:
        logger.removeHandler(keeper)
        logger.level, logger.disabled = before
