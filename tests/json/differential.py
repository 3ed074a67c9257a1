#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our reader and writer against Python's json: the same verdict and, where accepted, the same value.

Usage: differential.py path/to/json-echo [rounds]
Python is looser in known ways (NaN, Infinity, doubled names, lone surrogates, bad UTF-8, huge
depth): those are turned into refusals here.
"""
import json
import random
import subprocess
import sys

ECHO = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
NUMBERS = ["0", "-0", "1", "-1.5", "1e5", "1E-7", "0.10", "123456789012345678901234567890", "1e400",
           "01", "1.", ".5", "+1", "-", "1e", "0x1"]
STRINGS = ['""', '"a"', '"\\n"', '"\\u20ac"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00x"', '"€"', '"😀"',
           '"\t"', '"\\x"', '"\\u12"', '"', '"\\"', '"\\u0000"', "'a'"]
TOKENS = ["{", "}", "[", "]", ",", ":", " ", "\n", "true", "false", "null", "nul", "NaN", "\x00", "\ufeff",
          "\xa0", "//", "tru"]


def strict(text):
    """The value, or an exception."""
    def pairs(items):
        names = [name for name, _ in items]
        if len(set(names)) != len(names):
            raise ValueError("doubled name")
        return dict(items)

    def number(source):  # kept as its text: ours must hand it on unchanged
        return ["number", source]

    def constant(word):
        raise ValueError(word)

    value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant,
                       parse_float=number, parse_int=number)
    json.dumps(value, ensure_ascii=False).encode()  # lone surrogates fail here
    return value


def valid(depth):
    kind = random.randrange(8 if depth < 5 else 5)
    if kind < 2:
        return random.choice(NUMBERS[:9])
    if kind < 4:
        return json.dumps("".join(chr(random.choice([random.randrange(0x20, 0x7f), random.randrange(0xd7ff),
                          random.randrange(0x10000, 0x10ffff), 10, 0])) for _ in range(random.randrange(6))),
                          ensure_ascii=random.random() < .5)
    if kind == 4:
        return random.choice(["true", "false", "null"])
    blank = random.choice(["", " ", "\n\t"])
    if kind == 5 or kind == 6:
        return "[" + ("," + blank).join(valid(depth + 1) for _ in range(random.randrange(4))) + blank + "]"
    return "{" + ",".join(f'{blank}"{random.randrange(12)}"{blank}:{valid(depth + 1)}'
                          for _ in range(random.randrange(12))) + "}"


def mutate(data):
    data = bytearray(data)
    for _ in range(random.randrange(3)):
        at = random.randrange(len(data) + 1)
        what = random.randrange(3)
        if what == 0:
            data[at:at + 1] = b""
        elif what == 1:
            data[at:at] = bytes([random.choice(b'{}[]",:\\0123eE+-.u \x00\x1f\x7f\xc3\xff')])
        elif data:
            data[at % len(data)] ^= 1 << random.randrange(8)
    return bytes(data)


def sample():
    if random.random() < .3:
        return "".join(random.choice(random.choice([NUMBERS, STRINGS, TOKENS, TOKENS]))
                       for _ in range(random.randrange(1, 9))).encode()
    return mutate(valid(0).encode("utf-8", "surrogatepass"))


def main():
    random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    echo = subprocess.Popen([ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    failed = accepted = 0
    for _ in range(ROUNDS):
        data = sample()
        try:
            expected, verdict = strict(data.decode()), True
        except (ValueError, RecursionError):
            expected, verdict = None, False
        echo.stdin.write(b"%d\n" % len(data) + data)
        echo.stdin.flush()
        head = echo.stdout.readline().split(b" ", 1)
        got = echo.stdout.read(int(head[1])) if head[0] == b"ok" else None
        ok = (got is not None) == verdict
        if ok and verdict:
            accepted += 1
            ok = strict(got.decode()) == expected
        if not ok:
            failed += 1
            print(f"# {data!r}: Python {verdict}, ours {head} {got!r}")
    print(f"{'not ok' if failed else 'ok'} 1 - {ROUNDS} documents, {accepted} accepted, {failed} differ\n1..1")
    return 1 if failed else 0


sys.exit(main())
