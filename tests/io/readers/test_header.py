from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.io.readers.header import NAME_WORDS, looks_like_header, may_be_header


def decide(*lines: str, by: Callable[..., bool] = looks_like_header) -> bool:
    first, *rows = [line.split(",") for line in lines]
    return by(first, rows, dict(zip(("src", "dst", "weight", "time"), range(len(first)), strict=False)))


@pytest.mark.parametrize(
    "lines",
    [
        ["x,y", "1,2"],
        ["x,y,z", "ann,bob,0.5"],
        ["x,y,z,t", "ann,bob,1,2020-01-02"],
        ["x,y", "ann,1", "bob,2", "cat,3"],
        ["x,y", "u1,i7", "u2,i7", "u3,i9"],
        ["user,item", "ann,bread"],
        ["user_id,itemId", "ann,bread"],
        ["Source Node,TARGET", "ann,bob"],
    ],
)
def test_looks_like_header_of_names_returns_true(lines: list[str]) -> None:
    assert decide(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        ["user,item"],  # no rows
        ["1,2", "3,4"],
        ["ann,bob", "cat,dan"],
        ["user,item", "user,bread"],  # an id that occurs again
        ["x,y,z", "ann,bob,likes"],
        ["x,y", "ann,1", "bob,2"],  # few rows
        ["x,y", "u1,i7", "u2,i7"],
        ["user1,user2", "user3,user4"],
        ["user,7", "ann,8"],
        ["head of state,book club", "ann,bread"],  # not only words that name columns
        ["x,y", "1,2,3"],  # another number of fields
        [",", "ann,bob"],
        ["1,2,inf", "3,4,1"],  # a bad weight
        ["ann,bob,NaN", "cat,dan,1"],
    ],
)
def test_looks_like_header_of_an_edge_returns_false(lines: list[str]) -> None:
    assert not decide(*lines)


PURCHASES = ["ann,bread", "bob,milk", "cat,bread"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["lender,borrower", *PURCHASES], True),
        (["lender,borrower", "ann,bread"], True),  # as in a live source, which may have two lines
        (["Company Name,sub-supplier", *PURCHASES], True),
        (["Lender (code),Borrower (code)", *PURCHASES], True),
        ([":START_ID,:END_ID", *PURCHASES], True),  # of Neo4j
        (["hero1,hero2", *PURCHASES], True),
        (["hero1,hero2", "h7,h8", "h9,h11"], True),
        (["Person 1,Person 2", *PURCHASES], True),
        (["id_1,id_2", *PURCHASES], True),
        (["user1_id,user2_id", *PURCHASES], True),
        (["u,v", *PURCHASES], True),
        (["A,B", "ann,bread"], True),
        (["x,y", "u1,i7", "u2,i7"], True),
        (["lender1,borrower", *PURCHASES], True),
        (["user,item"], True),  # a file of one line
        (["lender,borrower"], False),
        (["lender,borrower", *PURCHASES, "dan,borrower"], False),  # occurs again
        (["hero1,hero2", *PURCHASES, "hero2,milk"], False),
        (["n17,n4", "n3,n9"], False),
        (["hero1,hero2", *PURCHASES, "hero3,milk"], False),  # a hero below
        (["u1,i7", "u2,i7", "u3,i8"], False),
        (["bob12,ann7", "cat,dan", "eve9,dan"], False),
        (["user1_id,user2_id", "user3_id,user4_id"], False),
        (["A,B", "C,D"], False),
        (["JFK,LAX", "SFO,ORD", "BOS,MUC"], False),  # codes of one shape
        (["7,hero", *PURCHASES], False),  # begins with a digit
        (["ann@x.org,bob@y.org", "cat@z.org,dan@x.org"], False),
        (["ann,ann", "bob,bread"], False),  # columns have different names
    ],
)
def test_may_be_header_of_words_unlike_the_ids_after_them(lines: list[str], expected: bool) -> None:
    assert not decide(*lines)
    assert decide(*lines, by=may_be_header) is expected


SHAPES = [
    *[
        st.integers(0, 10**6).map(lambda number, prefix=prefix: f"{prefix}{number}")
        for prefix in ("n", "Person ", "u_")
    ],
    st.integers(-99, 10**9).map(str),
    st.text("abcdefghij", min_size=4, max_size=4),
    st.text("ABCDEFGHIJ", min_size=1, max_size=1),
    st.integers(10**15, 10**16 - 1).map(lambda number: f"{number:x}"),
    st.emails(),
    st.uuids().map(str),
]
"""Ids of one shape: prefix and number, integers, codes, hashes, addresses."""


@given(st.data(), st.sampled_from(SHAPES), st.sampled_from(SHAPES), st.booleans())
def test_first_edge_of_ids_of_one_shape_is_no_header_and_raises_no_doubt(
    data: st.DataObject, sources: st.SearchStrategy[str], targets: st.SearchStrategy[str], bipartite: bool
) -> None:
    rows = data.draw(st.lists(st.tuples(sources, targets if bipartite else sources), min_size=2, max_size=30))
    lines = [",".join(row) for row in rows]
    assert not decide(*lines)
    assert not decide(*lines, by=may_be_header)


def test_name_words_are_lowercase_words() -> None:
    assert all(word.isalpha() and word.islower() for word in NAME_WORDS)
