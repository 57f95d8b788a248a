from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Op, ids_to_list
from ripplevec.errors import FormatError, HeaderWarning
from ripplevec.io.readers.byte_stream import LineBlock
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sources import text_lines
from ripplevec.io.sources.text_lines import CsvLines, JsonLines, LineBuffer


def chunks(*data):
    """Return a function that returns one chunk per call, then nothing."""
    remaining = list(data)
    return lambda: remaining.pop(0) if remaining else b""


def any_line(line):
    return True


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b"#\n"]), max_size=20), st.integers(1, 4))
def test_line_buffer_lines_do_not_depend_on_chunks(parts, count):
    lines = LineBuffer("text", chunks(*parts))
    text, blocks = b"".join(parts), []
    while (peeked := lines.peek(count, any_line, True))[1]:
        block, number = peeked
        assert block.first == 1 + text[: lines.offset].count(b"\n")
        assert number <= count
        blocks.append(block.data)
        lines.advance(len(block.data))
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert lines.offset == len(text)


def test_line_buffer_peek_excludes_line_without_newline():
    more = [b"a\nb", b"", b"c\n", b""]
    lines = LineBuffer("text", lambda: more.pop(0))
    assert lines.peek(2, any_line, False)[0].data == b"a\n"
    assert lines.peek(2, any_line, False)[0].data == b"a\nbc\n"


def test_line_buffer_peek_counts_data_lines_only():
    lines = LineBuffer("text", chunks(b"#\n1\n#\n\n2\n3\n"))
    block, data_lines = lines.peek(2, lambda line: line.strip().isdigit(), False)
    assert (block.data, data_lines) == (b"#\n1\n#\n\n2\n", 2)
    lines.advance(len(block.data))
    assert (lines.offset, lines.line, lines.buffered_lines().data, lines.end_offset()) == (9, 6, b"3\n", 11)


def test_line_buffer_drops_byte_order_mark():
    lines = LineBuffer("text", chunks(b"\xef\xbb\xbfa\n"))
    assert lines.peek(1, any_line, False)[0].data == b"a\n"
    lines.advance(2)
    assert lines.offset == 5


def test_line_buffer_with_too_long_line_raises(monkeypatch):
    monkeypatch.setattr(text_lines, "MAX_LINE_BYTES", 4)
    with pytest.raises(FormatError, match="text, line 1: expected lines of text"):
        LineBuffer("text", chunks(b"aaa", b"aaa", b"aaa")).peek(1, any_line, False)


def lines_of(*data):
    return LineBuffer("e", chunks(*data))


def test_csv_lines_saved_state_keeps_layout_and_id_type():
    text, lines = CsvLines("e", ReadOptions(), {}), lines_of(b"# edges\nsource;target\n", b"1;2\n", b"a;b\n")
    assert text.read_header(lines, False)
    assert (lines.offset, lines.line) == (22, 3)
    saved_state = json.loads(json.dumps(text.saved_state()))
    assert saved_state["ids"] == "int"
    restored = CsvLines("e", ReadOptions(), saved_state)
    assert restored.read_header(lines_of(), False)
    batch, bad_messages, _ = restored.parse(LineBlock(3, b"1;2\na;b\n3;4"))
    assert ids_to_list(batch.src) == [1, 3]
    assert [(bad.where, bad.message) for bad in bad_messages] == [("e, line 4", "a;b")]
    assert 'ids="str"' in bad_messages[0].reason


def test_csv_lines_read_header_waits_for_second_line():
    text, lines = CsvLines("e", ReadOptions(), {}), lines_of(b"a,b\n", b"", b"c,d\n")
    assert not text.read_header(lines, False)
    assert text.saved_state() == {}
    assert text.read_header(lines, False)
    assert lines.offset == 0
    assert CsvLines("e", ReadOptions(), {}).read_header(lines_of(b"a,b"), True)


@pytest.mark.parametrize("final", [False, True])
def test_csv_lines_with_first_line_that_may_be_a_header_warn(final):
    with pytest.warns(HeaderWarning, match="e, line 1: read as an edge between 'hero1' and 'hero2'"):
        assert CsvLines("e", ReadOptions(), {}).read_header(
            lines_of(b"hero1,hero2\nann,bob" + b"\n" * (not final)), final
        )


def test_csv_lines_judge_a_doubtful_first_line_by_all_available_lines():
    lines = lines_of(b"hero1,hero2\nann,bob\nbob,hero3\n")
    assert CsvLines("e", ReadOptions(), {}).read_header(lines, False)  # without a warning


def test_csv_lines_without_edge_leave_id_type_open():
    text = CsvLines("e", ReadOptions(), {})
    assert text.read_header(lines_of(b"src,dst\n", b"1\n"), False)
    assert text.saved_state()["ids"] == "auto"
    assert ids_to_list(text.parse(LineBlock(3, b"1,2\n"))[0].src) == [1]
    assert text.saved_state()["ids"] == "int"


def test_json_lines_parse_any_message():
    text = JsonLines("e", ReadOptions(), {})
    assert text.read_header(lines_of(), False)
    assert text.is_data_line(b"[]\n")
    assert not text.is_data_line(b" \n")
    block = LineBlock(4, b'[1, 2]\n\n{"remove_edges": [[1, 2]]}\nnothing\n{"src": 3, "dst": 4}')
    batch, bad_messages, _ = text.parse(block)
    assert ids_to_list(batch.dst) == [2, 2, 4]
    assert batch.op.tolist() == [Op.ADD, Op.REMOVE, Op.ADD]
    assert [bad.where for bad in bad_messages] == ["e, line 7"]
    assert text.saved_state() == {}
