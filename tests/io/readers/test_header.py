from __future__ import annotations

from collections.abc import Callable

import pytest

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


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["lender,borrower", "ann,bread", "bob,milk", "cat,bread"], True),
        (["Company Name,sub-supplier", "ann,bread", "bob,milk", "cat,bread"], True),
        (["lender,borrower", "ann,bread", "bob,milk"], False),  # few rows
        (["lender,borrower", "ann,bread", "bob,milk", "cat,borrower"], False),  # occurs again
        (["lender1,borrower", "ann,bread", "bob,milk", "cat,bread"], False),
        (["u,v", "ann,bread", "bob,milk", "cat,bread"], False),  # as vertices are called in small examples
    ],
)
def test_may_be_header_of_words_that_do_not_occur_again(lines: list[str], expected: bool) -> None:
    assert not decide(*lines)
    assert decide(*lines, by=may_be_header) is expected


def test_name_words_are_lowercase_words() -> None:
    assert all(word.isalpha() and word.islower() for word in NAME_WORDS)
