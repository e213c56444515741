"""Small file systems in memory, which only a process that may mount them can have."""

import ctypes
import os

from harness import Skip, equal

MS_RDONLY, MS_REMOUNT, MNT_DETACH = 1, 32, 2

libc = ctypes.CDLL(None, use_errno=True)


class Disk:
    """`with Disk(path, size) as disk`: a small file system, mounted there."""

    def __init__(self, path, size):
        path.mkdir()
        self.path = str(path).encode()
        if libc.mount(b"frond", self.path, b"tmpfs", 0, f"size={size}".encode()) != 0:
            raise Skip("a process that may mount a file system")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        libc.umount2(self.path, MNT_DETACH)

    def resize(self, size):
        equal(libc.mount(b"frond", self.path, b"tmpfs", MS_REMOUNT, f"size={size}".encode()), 0)

    def set_read_only(self, read_only):
        flags = MS_REMOUNT | (MS_RDONLY if read_only else 0)
        if libc.mount(b"frond", self.path, b"tmpfs", flags, None) != 0:
            raise AssertionError(os.strerror(ctypes.get_errno()))

    def fill(self):
        """Takes all room that is left."""
        with open(os.path.join(os.fsdecode(self.path), "ballast"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(os.urandom(4096))
            except OSError:
                pass

    def empty(self):
        os.unlink(os.path.join(os.fsdecode(self.path), "ballast"))
