"""Parts of the environment of a test file, which starts it once and gives its gateway first, then its upstreams."""

import pytest


@pytest.fixture
def gateway(environment):
    return environment[0]


@pytest.fixture
def one(environment):
    """The first upstream. After the test it echoes again."""
    yield environment[1]
    environment[1].respond = environment[1].echo
