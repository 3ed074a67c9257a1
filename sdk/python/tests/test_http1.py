# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes."""
import random

import pytest
from maitento._http1 import Broken, Head, NotHttp, body_length, chunk_size, parse_head, request_head


def test_heads_of_requests():
    head = request_head("GET", "/v1/x?a=%20", {"Host": "h:1", "X": "a\tb é"})
    assert head == b"GET /v1/x?a=%20 HTTP/1.1\r\nHost: h:1\r\nX: a\tb \xe9\r\n\r\n"


@pytest.mark.parametrize(
    "name, value", [("X", "a\nInjected: 1"), ("X", "a\r"), ("X\r\nY", "1"), ("X", "\0"), ("X", "€")]
)
def test_nothing_is_smuggled_into_a_head(name, value):
    with pytest.raises(ValueError):
        request_head("GET", "/", {name: value})


def test_heads_of_answers():
    head = parse_head(b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX-Y:  a b \r\nx-y: c")
    assert head == Head(201, {"content-length": "5", "x-y": "c"}, True)
    assert not parse_head(b"HTTP/1.1 200 OK\r\nConnection: Close").keep and not parse_head(b"HTTP/1.0 200 OK").keep
    assert parse_head(b"HTTP/1.0 200 OK\r\nConnection: keep-alive").keep


@pytest.mark.parametrize("first", [b"", b"HTTP/2 200", b"HTTP/1.1 20", b"ICY 200 OK", b"SSH-2.0-x"])
def test_what_is_no_http(first):
    with pytest.raises(NotHttp):
        parse_head(first)


@pytest.mark.parametrize("line", [b"no colon", b": empty", b"a b: c", b" folded: x"])
def test_headers_that_are_none(line):
    with pytest.raises(Broken):
        parse_head(b"HTTP/1.1 200 OK\r\n" + line)


@pytest.mark.parametrize(
    "method, status, headers, length",
    [
        ("GET", 200, {"content-length": "5"}, 5),
        ("GET", 200, {"transfer-encoding": "Chunked", "content-length": "5"}, -1),
        ("GET", 200, {}, None),
        ("HEAD", 200, {"content-length": "5"}, 0),
        ("GET", 204, {}, 0),
        ("GET", 304, {"content-length": "5"}, 0),
    ],
)
def test_how_long_a_body_is(method, status, headers, length):
    assert body_length(method, Head(status, headers, True)) == length


@pytest.mark.parametrize("length", ["-1", "5,5", "0x5", "", "\u00b2"])
def test_lengths_that_are_none(length):
    with pytest.raises(Broken):
        body_length("GET", Head(200, {"content-length": length}, True))


def test_sizes_of_chunks():
    assert [chunk_size(line) for line in (b"0", b"1F", b"a ;name=value")] == [0, 31, 10]
    for line in (b"", b"-1", b"0x5", b"g", b"1" * 16):
        with pytest.raises(Broken):
            chunk_size(line)


def test_any_bytes_are_a_head_or_broken():
    chance = random.Random(26)
    for _ in range(20_000):
        data = bytearray(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: x")
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            body_length("GET", parse_head(bytes(data)))
        except Broken:
            pass
