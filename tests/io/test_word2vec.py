from __future__ import annotations

import numpy as np
import pytest
from gensim.models import KeyedVectors

from ripplevec.errors import InvalidValueError
from ripplevec.io import write_vectors

VECTORS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32) * np.logspace(-20, 20, 5)[:, None].astype(
    "f4"
)
IDS = ["ann", 7, "日本", '"quoted",', "-1"]


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
def test_gensim_reads_it_to_the_last_bit(tmp_path, suffix):
    path = tmp_path / f"vectors{suffix}"
    write_vectors(path, IDS, VECTORS)
    held = KeyedVectors.load_word2vec_format(path, binary=suffix == ".bin")
    assert held.index_to_key == [str(name) for name in IDS]
    assert np.array_equal(held.vectors, VECTORS)


def test_the_text_is_what_word2vec_writes(tmp_path):
    write_vectors(tmp_path / "v.txt", ["a", 2], np.array([[0.5, -1], [0, 3]], np.float32))
    assert (tmp_path / "v.txt").read_text() == "2 2\na 0.5 -1\n2 0 3\n"


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
def test_the_bytes_are_those_of_gensim(tmp_path, suffix):
    """But for how a number is written, and a line's end behind a vector, which word2vec itself writes too."""
    held = KeyedVectors(2)
    held.add_vectors(["a", "b"], np.array([[0.5, -1.5], [0.25, 3.5]], np.float32))
    held.save_word2vec_format(tmp_path / f"theirs{suffix}", binary=suffix == ".bin")
    write_vectors(tmp_path / f"ours{suffix}", ["a", "b"], held.vectors)
    ours, theirs = ((tmp_path / f"{who}{suffix}").read_bytes() for who in ("ours", "theirs"))
    assert ours == theirs if suffix == ".txt" else ours.replace(b"\n", b"") == theirs.replace(b"\n", b"")


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
@pytest.mark.parametrize("name", ["a b", "", " a", "a\n", "a\u00a0b"])
def test_what_is_no_word(tmp_path, suffix, name):
    with pytest.raises(InvalidValueError, match="ids: expected ids without blanks"):
        write_vectors(tmp_path / f"v{suffix}", ["x", name], np.zeros((2, 2), np.float32))
    assert not list(tmp_path.iterdir())


def test_two_ids_that_would_be_one_word(tmp_path):
    with pytest.raises(InvalidValueError, match="both 7 and '7'"):
        write_vectors(tmp_path / "v.txt", [7, "x", "7"], np.zeros((3, 2), np.float32))
