from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.errors import FormatError
from ripplevec.io.sources import text_lines as lines_module
from ripplevec.io.sources.text_lines import LineBuffer


def pieces(*data):
    waiting = list(data)
    return lambda: waiting.pop(0) if waiting else b""


def everything(line):
    return True


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b"#\n"]), max_size=20), st.integers(1, 4))
def test_lines_do_not_depend_on_how_the_bytes_came(parts, count):
    lines = LineBuffer("text", pieces(*parts))
    text, seen = b"".join(parts), []
    while (found := lines.peek(count, everything, True))[1]:
        block, number = found
        assert block.first == 1 + text[: lines.offset].count(b"\n")
        assert number <= count
        seen.append(block.data)
        lines.take(len(block.data))
    assert b"".join(seen) == text
    assert all(block.endswith(b"\n") for block in seen[:-1])
    assert lines.offset == len(text)


def test_a_line_without_its_newline_is_not_yet_a_line():
    more = [b"a\nb", b"", b"c\n", b""]
    lines = LineBuffer("text", lambda: more.pop(0))
    assert lines.peek(2, everything, False)[0].data == b"a\n"
    assert lines.peek(2, everything, False)[0].data == b"a\nbc\n"


def test_only_lines_that_count_are_counted():
    lines = LineBuffer("text", pieces(b"#\n1\n#\n\n2\n3\n"))
    block, found = lines.peek(2, lambda line: line.strip().isdigit(), False)
    assert (block.data, found) == (b"#\n1\n#\n\n2\n", 2)
    lines.take(len(block.data))
    assert (lines.offset, lines.line, lines.waiting().data, lines.held()) == (9, 6, b"3\n", 11)


def test_a_mark_at_the_beginning_is_no_text():
    lines = LineBuffer("text", pieces(b"\xef\xbb\xbfa\n"))
    assert lines.peek(1, everything, False)[0].data == b"a\n"
    lines.take(2)
    assert lines.offset == 5


def test_a_line_beyond_reason(monkeypatch):
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", 4)
    with pytest.raises(FormatError, match="text, line 1: expected lines of text"):
        LineBuffer("text", pieces(b"aaa", b"aaa", b"aaa")).peek(1, everything, False)
