#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file as C: embed.py INPUT OUTPUT NAME gives `const char NAME[]` and `const size_t NAME_len`."""
import sys

with open(sys.argv[1], "rb") as file:
    data = file.read()
rows = "".join(f"    {', '.join(str(b) for b in data[i:i + 20])},\n" for i in range(0, len(data), 20))
with open(sys.argv[2], "w") as out:
    out.write(f"#include <stddef.h>\n\nextern const char {sys.argv[3]}[];\nextern const size_t {sys.argv[3]}_len;\n"
              f"const char {sys.argv[3]}[] = {{\n{rows}    0}};\n"
              f"const size_t {sys.argv[3]}_len = {len(data)};\n")
