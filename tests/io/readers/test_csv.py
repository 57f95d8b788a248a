from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Op, ids_to_list
from ripplevec.errors import FormatError, HeaderWarning, InvalidValueError
from ripplevec.io.readers import csv
from ripplevec.io.readers.byte_stream import ByteStream, LineBlock
from ripplevec.io.readers.edge_rows import BadRowHandler, ReadOptions
from ripplevec.io.readers.option_syntax import as_flags
from ripplevec.io.rebatch import concatenate


def read(text, bad_rows=None, **options):
    data = text if isinstance(text, bytes) else text.encode()
    read_options = ReadOptions(**options)
    bad_rows = bad_rows or BadRowHandler("e.csv", read_options.on_error, syntax=read_options.syntax)
    return concatenate(list(csv.read_batches(ByteStream("e.csv", io.BytesIO(data)), read_options, bad_rows)))


def edges(text, **options):
    batch = read(text, **options)
    return list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "1\t2\n3\t4",
        "1;2\r\n3;4\r\n",
        "1 2\n3 4\n",
        "  1   2\n3 \t 4  \n",
        "# a comment\n% another\n1,2\n#1,9\n\n3,4\n",
        "src,dst\n1,2\n3,4\n",
        "# made by hand\n\nTarget;Source\n2;1\n4;3\n",
        '"1","2"\n"3","4"\n',
        "\ufeff1, 2\n3, 4\n",
    ],
)
def test_read_batches_accepts_every_separator_header_and_comment(text):
    assert edges(text) == [(1, 2), (3, 4)]


def test_read_batches_without_header_reads_weight_and_time_by_position():
    batch = read("1 2 0.5 100\n3 4 2 200\n")
    assert batch.weight.tolist() == [0.5, 2.0]
    assert batch.time.tolist() == [100.0, 200.0]


def test_read_batches_finds_columns_by_name_or_position():
    text = "when,a,b,w\n5,1,2,0.5\n"
    batch = read(text, src="a", dst="b", weight="w", time="when")
    assert (batch.src.tolist(), batch.dst.tolist(), batch.weight.tolist(), batch.time.tolist()) == (
        [1],
        [2],
        [0.5],
        [5.0],
    )
    assert edges("9 1 2\n9 3 4\n", src="2", dst="3") == [(1, 2), (3, 4)]
    assert read("9 1 2\n", src="2", dst="3").weight is None
    assert read("1 2 x\n", weight="none").weight is None


@pytest.mark.parametrize(
    "time", ["2020-01-02", "2020-01-02T00:00:00", "2020-01-02 00:00:00", "2020-01-02T00:00:00Z", "1577923200"]
)
def test_read_batches_parses_dates(time):
    assert read(f"src,dst,time\n1,2,{time}\n").time.tolist() == [1577923200.0]


@pytest.mark.parametrize("quoted", [False, True])
def test_read_batches_with_op_column_returns_operations(quoted):
    rows = ["1,2,add,0.5", "1,2,remove,1", "3,3,remove_vertex,1"] + ['4,"5",,2'] * quoted
    batch = read("src,dst,OP,weight\n" + "\n".join(rows) + "\n")
    assert ids_to_list(batch.src) == [1, 1, 3] + [4] * quoted
    assert ids_to_list(batch.dst) == [2, 2, 3] + [5] * quoted
    assert batch.op.tolist() == [Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX] + [Op.ADD] * quoted
    assert batch.weight[0] == 0.5


def test_read_batches_needs_no_weight_for_removal_and_no_target_for_vertex():
    batch = read("src,dst,weight,op\na,b,2,\na,b,,remove\na,,,remove_vertex\n")
    assert (ids_to_list(batch.src), ids_to_list(batch.dst)) == (["a", "a", "a"], ["b", "b", "a"])
    assert (batch.op.tolist(), batch.weight.tolist()) == ([0, 1, 3], [2, 1, 1])


def test_read_batches_finds_op_by_name_or_position():
    text = "src,dst,kind\n1,2,add\n1,2,remove\n"
    assert read(text, op="kind").op.tolist() == [0, 1]
    assert read("1,2,remove\n", src="1", dst="2", op="3").op.tolist() == [1]
    assert read(text.replace("kind", "op"), op="none").op is None
    assert read("1,2,1,4\n").op is None  # without names, no field is one
    with pytest.raises(FormatError, match="expected columns src, dst, sort"):
        read(text, op="sort")
    with pytest.raises(FormatError, match=r"line 3: expected an op that is one of add, .* not 'paint'"):
        read("src,dst,op\n1,2,add\n1,2,paint\n")


def test_read_batches_keeps_quoted_delimiters_and_quotes():
    assert edges('"a,b";c\n"d ""e""";f\n') == [("a,b", "c"), ('d "e"', "f")]
    assert edges('"a b"  c\n') == [("a b", "c")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('src,dst\na,"b\nc"\nd,e\n', [("a", "b\nc"), ("d", "e")]),
        ('src,dst\naaaaaaaaa,"b\n\n\n\nc"\nd,e\n', [("aaaaaaaaa", "b\n\n\n\nc"), ("d", "e")]),
        ('src,dst\n"a\n",b\n"c\n\nd",e', [("a\n", "b"), ("c\n\nd", "e")]),
        ('"a\nb",c\n"a\nb",d\n', [("a\nb", "c"), ("a\nb", "d")]),
        ('"a;\nb",c\nc,d\n', [("a;\nb", "c"), ("c", "d")]),
        ('src,dst\r\na,"b\r\n# no comment"\r\n"d ""e""\n",f\r\n', [("a", "b\n# no comment"), ('d "e"\n', "f")]),
    ],
)
@pytest.mark.parametrize("size", [20, 1 << 20])
def test_read_batches_reads_line_breaks_in_quoted_fields(text, expected, size, monkeypatch):
    monkeypatch.setattr(ByteStream.line_blocks, "__defaults__", (size,))
    assert edges(text) == expected


def test_read_batches_without_header_reads_a_line_break_in_the_first_record():
    assert edges('a,"b\nc"\nd,e\n', header=False) == [("a", "b\nc"), ("d", "e")]


def test_read_batches_with_an_open_quote_loses_one_line():
    lines = ["u,v", 'a,"b', *(f"{number},x" for number in range(5)), 'c,"d', "e,f"]
    bad_rows = BadRowHandler("e.csv", "skip")
    batch = read("\n".join(lines), bad_rows, header=False)
    assert ids_to_list(batch.src) == ["u", "0", "1", "2", "3", "4", "e"]
    assert bad_rows.count == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\nx,3\n", [("1", "2"), ("x", "3")]),
        ("007,8\n", [("007", "8")]),
        (f"{2**70},1\n", [(2**70, 1)]),
        ("-1,0\n", [(-1, 0)]),
    ],
)
def test_read_batches_detects_integers_only_if_all_ids_are_canonical(text, expected):
    assert edges(text) == expected


def test_read_batches_returns_requested_id_type():
    assert edges("1,2\n", ids="str") == [("1", "2")]
    assert edges("007,+8\n", ids="int") == [(7, 8)]


def test_read_batches_with_text_after_block_of_integers_raises(monkeypatch):
    monkeypatch.setattr(
        ByteStream, "line_blocks", lambda self: iter([LineBlock(1, b"1,2\n3,4\n"), LineBlock(3, b"5,6\nalice,7\n")])
    )
    with pytest.raises(FormatError, match=r"e\.csv, line 4: expected integer ids.*ids=\"str\".*'alice,7'"):
        read("")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3\n", "line 2: expected 2 fields, not 1, got '3'"),
        ("1,2\n3,4,5\n", "line 2: expected 2 fields, not 3"),
        ("1,2,1\n# x\n\n3,4,-1\n", "line 4: expected a positive finite weight, not '-1'"),
        ("1,2,1\n3,4,nan\n", "line 2: expected a positive finite weight"),
        ("1,2,1\n3,4,0\n", "line 2: expected a positive finite weight"),
        ("1,2,1\n3,4,\n", "line 2: expected a positive finite weight"),
        ("a,b\nc,\n", "line 2: expected an id"),
        (b"a,b\nc,\xff\n", "line 2: expected UTF-8 text"),
        (b"\xff,b\n", "line 1: expected UTF-8 text"),
        ('a,b\nc,"d\ne,f\n', "line 2: expected a closing quote"),
        ("a,b\nc,d\re,f\n", "line 2: expected fields"),
        ("src,dst,time\n1,2,soon\n", "line 2: expected a time"),
        ("src,dst,time\n1,2,1e300\n", "line 2: expected a time"),
        ("a|b\n", "expected src in field 1, dst in field 2 between tabs, commas, semicolons or blanks, got 1"),
        ("1 2\n", None),
    ],
)
def test_read_batches_with_bad_line_raises_error_with_line_number(text, message):
    if message is None:
        assert edges(text) == [(1, 2)]
        return
    with pytest.raises(FormatError) as caught:
        read(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("e.csv")


def test_read_batches_error_shortens_long_line():
    with pytest.raises(FormatError) as caught:
        read("1,2\n" + "x" * 10_000 + "\n")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("options", [{"src": "a", "dst": "b"}, {"src": "src", "dst": "dst", "weight": "w"}])
def test_read_batches_with_missing_column_raises(options):
    with pytest.raises(FormatError, match=r"expected columns .* got src, dst"):
        read("src,dst\n1,2\n", **options)


def test_read_batches_with_missing_position_raises():
    with pytest.raises(FormatError, match="dst in field 5, got 2"):
        read("1,2\n", src="1", dst="5")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user,item\n1,2\n", [(1, 2)]),
        ("user,item\nann,bread\nbob,milk\n", [("ann", "bread"), ("bob", "milk")]),
        ("item;source\nbread;ann\n", [("ann", "bread")]),
        ("# bought\nuser,item,weight\nann,bread,2\n", [("ann", "bread")]),
    ],
)
def test_read_batches_with_unknown_header_reads_it_as_header_and_warns(text, expected):
    with pytest.warns(HeaderWarning, match=r"e\.csv, line \d: read as a header: src is '(user|source)', dst is 'item'"):
        assert edges(text) == expected
    assert edges(text, header=True) == expected


@pytest.mark.parametrize("names", ["lender,borrower", "hero1,hero2", "node1,node2", "id_1,id_2", "u,v", "A,B"])
def test_read_batches_with_first_line_that_may_be_a_header_warns_and_reads_an_edge(names):
    text = f"{names}\nann,bread\nbob,milk\ncat,bread\n"
    src, dst = names.split(",")
    message = rf"e\.csv, line 1: read as an edge between '{src}' and '{dst}', which do not occur again.*header=True"
    with pytest.warns(HeaderWarning, match=message):
        assert len(edges(text)) == 4
    assert len(edges(text, header=True)) == 3
    assert len(edges(text, header=False)) == 4


def test_read_batches_without_header_reads_every_line_as_edge():
    assert edges("user,item\n1,2\n", header=False) == [("user", "item"), ("1", "2")]
    assert edges("src,dst\n1,2\n", header=False) == [("src", "dst"), ("1", "2")]
    assert edges("item,user\n1,2\n", header=True, src="2", dst="1") == [(2, 1)]
    expected = (
        r"without a header: expected positions from 1, got 'user, item'\. Select .* src=\"1\", dst=\"2\".*header=F"
    )
    with pytest.raises(InvalidValueError, match=expected):
        read("user,item\n1,2\n", header=False, src="user", dst="item")


def test_read_batches_with_unknown_third_column_says_how_to_name_it():
    text = "user,item,rating\nann,bread,5\n"
    message = (
        r"expected columns src, dst, got user, item, rating\. Name .* --src NAME --dst NAME --weight NAME --time NAME\."
    )
    with pytest.raises(FormatError, match=f"e.csv, line 1: {message} If this line is an edge: --no-header"):
        read(text, syntax=as_flags)
    assert read(text, src="user", dst="item", weight="rating").weight.tolist() == [5]
    with pytest.warns(HeaderWarning, match="src is 'user', dst is 'item'"):
        assert read(text.replace("rating", "weight"), weight="none").weight is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann,bob,likes\nbob,cat,likes\n", "a positive finite weight, not 'likes' .*weight"),
        ("ann,bob,1,soon\nbob,cat,1,late\n", "a time as a number or in ISO 8601, not 'soon' .*time"),
    ],
)
def test_read_batches_with_words_as_numbers_says_how_to_ignore_them(text, expected):
    with pytest.raises(FormatError, match=f'line 1: expected {expected}="none"'):
        read(text)
    with pytest.raises(FormatError, match=f"line 1: expected {expected.replace('.*', r'.*--')} none"):
        read(text, syntax=as_flags)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_read_batches_with_header_inside_the_file_reports_it(end, quote):
    text = end.join(["src,dst", "a,b", f"{quote}c{quote},d", "src,dst", "e,f", ""])
    with pytest.raises(FormatError, match="line 4: expected an edge, not the header again"):
        read(text)
    assert edges(text, on_error="skip") == [("a", "b"), ("c", "d"), ("e", "f")]


def test_read_batches_with_skip_reports_bad_rows():
    bad_rows = BadRowHandler("e.csv", "skip")
    batch = read(b"1,2,1\n3\n4,5,-1\n6,7,\xff\n8,9,2\n", bad_rows)
    assert (batch.src.tolist(), batch.weight.tolist()) == ([1, 8], [1.0, 2.0])
    assert (bad_rows.count, bad_rows.first) == (3, [2, 3, 4])


def test_read_batches_keeps_self_loops():
    assert edges("1,1\n") == [(1, 1)]


def test_read_batches_does_not_depend_on_block_size(monkeypatch):
    whole = ByteStream.line_blocks
    monkeypatch.setattr(ByteStream, "line_blocks", lambda self: whole(self, 7))
    text = "# c\nsrc,dst,weight\n" + "".join(f"{i},{i + 1},{i + 1}\n" for i in range(200))
    batch = read(text)
    assert batch.src.tolist() == list(range(200))
    assert batch.weight.tolist() == list(range(1, 201))


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "src,dst\n"])
def test_read_batches_of_file_without_edges_is_empty(text):
    assert len(read(text)) == 0


numbers = st.sampled_from(["1", "-2", " 3", "007", "0x1f", "1.5", "nan", "1e3", "1_0"])
fields = numbers | st.sampled_from(["a", "ä b", '"q"', '"a""b"', '"', '"x"y', "", "#", "\t", "\r"])
lines = st.lists(fields, min_size=1, max_size=4)


@settings(max_examples=400)
@given(
    st.lists(lines, max_size=5), st.sampled_from([",", ";", "\t", " "]), st.sampled_from(["int", "str"]), st.booleans()
)
def test_arrow_parser_agrees_with_exact_parser_or_refuses(table, delimiter, ids, weighted):
    data = "".join(delimiter.join(row) + "\n" for row in table).encode()
    columns = {"src": 0, "dst": 1} | ({"weight": 2} if weighted else {})
    layout = csv.Layout(delimiter, len(columns), columns)
    try:
        fast = csv._parse_with_arrow(LineBlock(1, data), layout, ids)
    except (csv._NeedsExactParserError, ValueError):
        return
    exact, _ = csv._parse_exactly(LineBlock(1, data), layout, ids, BadRowHandler("x"), at_end=True)
    assert (ids_to_list(fast.src), ids_to_list(fast.dst)) == (ids_to_list(exact.src), ids_to_list(exact.dst))
    if weighted and len(exact):
        np.testing.assert_array_equal(fast.weight, exact.weight)


words = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=6).map(str.strip).filter(bool)


@given(st.lists(st.tuples(words, words, st.floats(1e-3, 1e3)), min_size=1, max_size=8), st.sampled_from(",;\t"))
def test_read_batches_of_quoted_text_returns_all_rows(rows, delimiter):
    quote = lambda text: '"' + text.replace('"', '""') + '"'  # noqa: E731
    text = "".join(delimiter.join([quote(u), quote(v), repr(w)]) + "\n" for u, v, w in rows)
    batch = read("src,dst,weight\n".replace(",", delimiter) + text, ids="str")
    assert list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), batch.weight.tolist(), strict=True)) == rows
