#!/usr/bin/env python3
"""Writes a text file as a C header with an array of its bytes and a NUL."""

import pathlib
import sys

source, target = map(pathlib.Path, sys.argv[1:])
codes = [str(byte - 256 if byte > 127 else byte) for byte in source.read_bytes()] + ["0"]
lines = [", ".join(codes[at:at + 20]) for at in range(0, len(codes), 20)]
guard = "FROND_EMBEDDED_" + target.stem.upper() + "_H"
target.write_text("/* Made of " + source.name + ". */\n"
                  "#ifndef " + guard + "\n#define " + guard + "\n\n"
                  "static const char " + target.stem + "_text[] = {\n\t" + ",\n\t".join(lines) +
                  "\n};\n\n#endif\n")
