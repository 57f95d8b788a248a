"""Allocation of memory ahead of use: content, and platforms without it."""

from __future__ import annotations

import mmap
import sys

import numpy as np
import pytest

from ripplevec.util import prefault as module
from ripplevec.util.prefault import prefault


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_prefault_allocates_pages_and_keeps_their_content() -> None:
    array = np.frombuffer(mmap.mmap(-1, 1 << 22), np.uint8)
    array[5] = 7
    future = prefault(array)
    assert future is not None
    assert future.result(timeout=60) in (0, 1 << 22)  # 0: the kernel is older than 5.14
    assert (array.sum(), array[5]) == (7, 7)


def test_prefault_array_within_one_page_does_nothing() -> None:
    future = prefault(np.zeros(10))
    assert future is None or future.result(timeout=60) == 0


def test_prefault_on_another_platform_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert prefault(np.zeros(1 << 16)) is None
