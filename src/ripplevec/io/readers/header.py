"""Decision whether the first line of a text file is a header, for lines without the names recognized by default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ripplevec.io.readers.edge_rows import RowError, parse_time

SAMPLE_LINES = 1000
"""Lines after the first one that the decision reads."""

FEW_ROWS = 3
"""Number of rows from which on a pattern in one column counts; fewer ids may have it in common by chance."""

# fmt: off
NAME_WORDS = frozenset({
    "account", "actor", "address", "artist", "author", "book", "buyer", "callee", "caller", "child", "cited",
    "citing", "client", "code", "company", "customer", "dest", "dst", "email", "entity", "file", "followee",
    "follower", "friend", "from", "group", "head", "host", "id", "ip", "item", "key", "member", "merchant",
    "movie", "name", "node", "number", "object", "page", "paper", "parent", "payee", "payer", "person", "product",
    "receiver", "recipient", "seller", "sender", "song", "source", "src", "station", "subject", "tail", "target",
    "title", "to", "topic", "track", "uid", "url", "user", "username", "vertex", "video", "word",
})
# fmt: on
"""Words that make up the names of the two id columns of an edge list: `user_id`, `fromNode`."""

_JOINS = str.maketrans("", "", "_-. ()")
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def looks_like_header(first: Sequence[str], rows: Sequence[Sequence[str]], columns: Mapping[str, int]) -> bool:
    """Return whether the first line names columns, judged by the rows after it and by its words.

    An id that occurs again belongs to an edge. Otherwise a text above a column of numbers or dates is a name, and so is
    a text without digits above ids that all have one. Two words such as `user` and `item` are names above any text.

    Parameters
    ----------
    first : sequence of str
        The fields of the first line.
    rows : sequence of sequence of str
        The fields of the lines after it.
    columns : mapping of str to int
        Positions of src, dst and, if there are any, weight and time.
    """
    rows = [row for row in rows if len(row) == len(first)]
    ends = [columns["src"], columns["dst"]]
    names = {first[position] for position in ends}
    if not rows or _occur_again(names, rows, ends):
        return False
    above_numbers = {column for column, at in columns.items() if _is_exception(first, rows, at, _is_number)}
    if above_numbers & {"weight", "time"} or above_numbers >= {"src", "dst"}:
        return True
    if len(rows) >= FEW_ROWS and (above_numbers or all(_is_exception(first, rows, at, _has_digit) for at in ends)):
        return True
    return all(map(_has_name_words_only, names))


def may_be_header(first: Sequence[str], rows: Sequence[Sequence[str]], columns: Mapping[str, int]) -> bool:
    """Return whether a first line that was taken for an edge may still name columns.

    Only a person can tell `lender,borrower` from an edge between two vertices of these names. It is in doubt if both
    ids are words, perhaps with numbers, that do not occur again, and the ids after them look different. Words without
    numbers do if an id has another length or case, words with the same letters (`hero1,hero2`) if no id has these
    letters with a number, and other words with numbers if no id has a digit.
    """
    ends = [columns["src"], columns["dst"]]
    rows = [row for row in rows if len(row) == len(first) and all(row[position] for position in ends)]
    names = {first[position] for position in ends}
    if len(names) < 2 or not all(map(_is_word, names)) or _occur_again(names, rows, ends):
        return False
    if not rows:
        return all(map(_has_name_words_only, names))
    if not any(map(_has_digit, names)):
        return any(_shape(row[position]) != _shape(first[position]) for row in rows for position in ends)
    forms = {_without_numbers(name) for name in names}
    ids = (row[position] for row in rows for position in ends)
    return not any(_without_numbers(name) in forms if len(forms) == 1 else _has_digit(name) for name in ids)


def _occur_again(names: set[str], rows: Sequence[Sequence[str]], ends: Sequence[int]) -> bool:
    return any(row[position] in names for row in rows for position in ends)


def _is_word(text: str) -> bool:
    """Return whether a text begins with a letter, `:` or `~`, and has only letters, digits and joins after it."""
    text = text.removeprefix(":").removeprefix("~")
    return text[:1].isalpha() and text.translate(_JOINS).isalnum()


def _without_numbers(text: str) -> str:
    """Return a text with 0 for each of its numbers, so that `hero1` and `hero12` are the same."""
    return _NUMBER.sub("0", text)


def _shape(text: str) -> str:
    """Return a text with "a" for each lowercase letter and "A" for any other: codes of one kind have one shape."""
    return "".join("a" if char.islower() else "A" if char.isalpha() else char for char in text)


def _is_exception(
    first: Sequence[str], rows: Sequence[Sequence[str]], position: int, test: Callable[[str], bool]
) -> bool:
    """Return whether a field passes a test in all rows, but not in the first line."""
    return not test(first[position]) and all(test(row[position]) for row in rows)


def _is_number(text: str) -> bool:
    """Return whether a text is a number, a date or a time. Infinity and NaN are bad numbers, and no names."""
    if text.strip().lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return True
    try:
        parse_time(text)
    except RowError:
        return False
    return True


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _has_name_words_only(text: str) -> bool:
    words = _WORDS.findall(text)
    return bool(words) and not _has_digit(text) and all(word.lower() in NAME_WORDS for word in words)
