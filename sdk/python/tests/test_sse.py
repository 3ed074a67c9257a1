# SPDX-License-Identifier: Apache-2.0
"""The parser of event streams."""
import pytest
from maitento._http1 import Broken
from maitento._sse import FRAME_MAX, Frame, Parser

STREAM = (
    'id: 41\nevent: hello\ndata: {"after":41}\n\n: beat\n\ndata: é€😀\ndata:two\n\n'
    "id: x\r\nevent:end\r\ndata: \r\n\r\nid: 7\r\r"
)
FRAMES = [Frame("hello", '{"after":41}', "41"), Frame("message", "é€😀\ntwo", None), Frame("end", "", "x")]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_frames_come_whole_however_they_are_cut(size):
    raw, parser, frames = b"\xef\xbb\xbf" + STREAM.encode(), Parser(), []
    for at in range(0, len(raw), size):
        frames += parser.feed(raw[at : at + size])
    assert frames == FRAMES


def test_what_has_no_data_is_no_event_and_an_unended_one_does_not_come():
    parser = Parser()
    assert parser.feed(b"event: x\n\nid: 3\n\nretry: 5\nunknown: 1\n\ndata: half\n") == []
    assert parser.feed(b"\n") == [Frame("message", "half", None)]


def test_bad_bytes_and_zeros():
    assert Parser().feed(b"id: a\0b\ndata: \xff!\n\n") == [Frame("message", "\ufffd!", None)]


def test_an_event_without_an_end_is_refused():
    parser = Parser()
    with pytest.raises(Broken):
        for _ in range(FRAME_MAX // (1 << 20) + 2):
            parser.feed(b"data: " + bytes(1 << 20) + b"\n")
