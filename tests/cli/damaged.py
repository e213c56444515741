"""What tests of damaged stores share."""

import pathlib


def noise(seed, count):
    """Text that does not compress."""
    state, text = seed * 2654435761 % 2**32 or 1, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        text.append(f"{state:08x}")
    return "".join(text)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0xff]))


def files(directory, suffix):
    return sorted(pathlib.Path(directory).rglob(f"*{suffix}"), key=lambda p: p.stat().st_size)
