#!/usr/bin/env python3
"""Writes a text file as a C header with an array of its bytes and a NUL."""

import pathlib
import sys

source, target = map(pathlib.Path, sys.argv[1:])
codes = [str(byte) for byte in source.read_bytes()] + ["0"]
lines = [", ".join(codes[at:at + 20]) for at in range(0, len(codes), 20)]
target.write_text("/* Made of " + source.name + ". */\n"
                  "#ifndef FROND_JS_WORKER_PRELUDE_H\n#define FROND_JS_WORKER_PRELUDE_H\n\n"
                  "static const char prelude_text[] = {\n\t" + ",\n\t".join(lines) + "\n};\n\n#endif\n")
