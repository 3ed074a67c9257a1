#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the migrations as one C table: embed.py OUTPUT FILE... (each NNNN_name.sql)."""
import os
import re
import sys

rows = []
for path in sorted(sys.argv[2:], key=os.path.basename):
    match = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", os.path.basename(path))
    if not match or int(match[1]) != len(rows) + 1:
        sys.exit(f"{path}: migrations are NNNN_name.sql, numbered from 0001 without a gap")
    with open(path, "rb") as file:
        data = file.read()
    text = "".join(f"    {', '.join(str(b) for b in data[i:i + 20])},\n" for i in range(0, len(data), 20))
    rows.append((int(match[1]), match[2], text, len(data)))

with open(sys.argv[1], "w") as out:
    for number, _, text, _ in rows:
        out.write(f"static const unsigned char SQL_{number}[] = {{\n{text}    0}};\n")
    out.write("static const struct migration MIGRATIONS[] = {\n")
    for number, name, _, size in rows:
        out.write(f'    {{{number}, "{name}", (const char *)SQL_{number}, {size}}},\n')
    out.write("};\n")
