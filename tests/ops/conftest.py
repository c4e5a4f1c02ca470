"""What the tests of operators share."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests import told_shapes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Rules for shapes (`Op.shape`, views' geometry) say what a trace would."""
    with pytest.MonkeyPatch.context() as patch:
        differences = told_shapes.compare(patch.setattr)
        yield
    assert differences == []
