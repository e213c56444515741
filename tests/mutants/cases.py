"""Of the tests that are scripts: some of their cases alone, and what each calls, as chosen.c has it for programs."""

import contextlib
import os
import struct
import time

SECONDS_AT = 8  # in the table of chosen.c, behind the number of the case that runs

WANTED = os.environ.get("MUTANT_CASES", "")
TABLE = os.environ.get("MUTANT_TABLE", "")


def is_wanted(number):
    return not WANTED or str(number) in WANTED.split(",")


@contextlib.contextmanager
def case(number):
    """What programs meet inside is noted as met by that case, and how long it took."""
    if not TABLE:
        yield
        return
    begin = time.monotonic()
    with open(TABLE, "r+b", buffering=0) as file:
        file.write(struct.pack("Q", number))
        try:
            yield
        finally:
            file.seek(SECONDS_AT + 8 * number)
            file.write(struct.pack("d", time.monotonic() - begin))
            file.seek(0)
            file.write(struct.pack("Q", 0))
