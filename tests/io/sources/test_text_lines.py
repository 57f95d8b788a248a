from __future__ import annotations

import json

from ripplevec.batch import Op, ids_to_list
from ripplevec.io.readers.byte_stream import LineBlock
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sources.text_lines import CsvLines, JsonLines, LineBuffer


def lines_of(*data):
    waiting = list(data)
    return LineBuffer("e", lambda: waiting.pop(0) if waiting else b"")


def test_what_the_first_lines_say_is_kept():
    text, lines = CsvLines("e", ReadOptions(), {}), lines_of(b"# edges\nsource;target\n", b"1;2\n", b"a;b\n")
    assert text.begin(lines, False)
    assert (lines.offset, lines.line) == (22, 3)
    known = json.loads(json.dumps(text.known()))
    assert known["ids"] == "int"
    again = CsvLines("e", ReadOptions(), known)
    assert again.begin(lines_of(), False)
    batch, poison = again.parse(LineBlock(3, b"1;2\na;b\n3;4"))
    assert ids_to_list(batch.src) == [1, 3]
    assert [(one.where, one.message) for one in poison] == [("e, line 4", "a;b")]
    assert "--ids str" in poison[0].reason


def test_a_header_is_known_by_the_line_below_it():
    text, lines = CsvLines("e", ReadOptions(), {}), lines_of(b"a,b\n", b"", b"c,d\n")
    assert not text.begin(lines, False)
    assert text.known() == {}
    assert text.begin(lines, False)
    assert lines.offset == 0
    assert CsvLines("e", ReadOptions(), {}).begin(lines_of(b"a,b"), True)


def test_the_kind_of_ids_waits_for_an_edge():
    text = CsvLines("e", ReadOptions(), {})
    assert text.begin(lines_of(b"src,dst\n", b"1\n"), False)
    assert text.known()["ids"] == "auto"
    assert ids_to_list(text.parse(LineBlock(3, b"1,2\n"))[0].src) == [1]
    assert text.known()["ids"] == "int"


def test_a_line_of_json_is_any_message():
    text = JsonLines("e", ReadOptions(), {})
    assert text.begin(lines_of(), False)
    assert text.counts(b"[]\n")
    assert not text.counts(b" \n")
    block = LineBlock(4, b'[1, 2]\n\n{"remove_edges": [[1, 2]]}\nnothing\n{"src": 3, "dst": 4}')
    batch, poison = text.parse(block)
    assert ids_to_list(batch.dst) == [2, 2, 4]
    assert batch.op.tolist() == [Op.ADD, Op.REMOVE, Op.ADD]
    assert [one.where for one in poison] == ["e, line 7"]
    assert text.known() == {}
