from __future__ import annotations

import numpy as np
import pytest

from ripplevec.cli.demo_pictures import places, write_html, write_png

LABELS = np.arange(60) % 4
VECTORS = np.eye(4, dtype=np.float32)[LABELS] + 0.1 * np.random.default_rng(0).random((60, 4), np.float32)


@pytest.fixture(scope="module")
def moments():
    return places([VECTORS[:20], VECTORS], LABELS)


def test_a_vertex_that_does_not_move_keeps_its_place(moments):
    np.testing.assert_allclose(moments[0], moments[1][:20])


def test_communities_stand_apart(moments):
    centers = np.array([moments[1][label == LABELS].mean(axis=0) for label in range(4)])
    spread = max(np.linalg.norm(moments[1] - centers[LABELS], axis=1))
    gaps = np.linalg.norm(centers[:, None] - centers[None], axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 4 * spread
    assert np.abs(moments[1]).max() == 1


def test_the_picture_is_a_picture(tmp_path, moments):
    write_png(tmp_path / "x.png", moments, LABELS, "a caption")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_needs_nothing_else(tmp_path, moments):
    write_html(tmp_path / "x.html", moments, LABELS, "a caption")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "a caption" in page
    assert "community 3" in page
    assert 'src="http' not in page
    assert len(page) > 1_000_000
