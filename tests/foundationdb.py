"""Finds FoundationDB's programs and starts clusters of one server each, for the tests."""

import contextlib
import ctypes
import hashlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

# Where its authors' packages install each, and where it lies beneath FROND_FDB_HOME.
PLACES = {"fdbserver": "/usr/sbin", "fdbcli": "/usr/bin", "libfdb_c.so": "/usr/lib"}
BENEATH = ("", "sbin", "bin", "lib", "usr/sbin", "usr/bin", "usr/lib")
# A commit waits for the disk, hundreds of thousands of times in the tests, none of which turns the machine off.
MEMORY = pathlib.Path("/dev/shm")
START_SECONDS = 120  # in which a server that works has answered, however busy the machine is


class Programs:
    """The paths of the server, of its command line and of the library for clients, as far as they
    are in these folders, by default where the packages install each."""

    def __init__(self, folders=None):
        self.missing = []
        self.paths = {}
        for name, place in PLACES.items():
            found = [path for folder in folders or [pathlib.Path(place)]
                     if (path := folder / name).is_file()]
            if found:
                self.paths[name] = found[0].absolute()
            else:
                self.missing.append(f"{name} in {place}")

    @property
    def server(self):
        return self.paths["fdbserver"]

    @property
    def cli(self):
        return self.paths["fdbcli"]

    @property
    def library(self):
        return self.paths["libfdb_c.so"]

    def version(self):
        said = subprocess.run([self.server, "--version"], capture_output=True, text=True).stdout
        return next((word.strip("v()") for word in said.split() if word.strip("v(")[:1].isdigit()), "")


def installed():
    """The programs beneath FROND_FDB_HOME, or where the packages install them."""
    home = os.environ.get("FROND_FDB_HOME")
    return Programs([pathlib.Path(home, part) for part in BENEATH] if home else None)


def with_server(path):
    """A server and the programs that belong to it: beside it, or in the folder bin beside its own."""
    folder = pathlib.Path(path).absolute().parent
    return Programs([folder, folder.parent / "bin"])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def die_with_parent():
    """A killed test leaves no server behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def ask(programs, file, command, seconds=60):
    """What fdbcli answers to a command at the cluster of a cluster file."""
    return subprocess.run([programs.cli, "-C", file, "--timeout", str(seconds), "--exec", command],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


def empty(file):
    """Removes all that is in a cluster; needs fdbcli."""
    server = os.environ.get("FROND_TEST_FDBSERVER")
    programs = with_server(server) if server else installed()
    if "fdbcli" not in programs.paths:
        raise RuntimeError("fdbcli is not there, with which the tests empty a cluster; "
                           "FROND_FDB_HOME names where it is")
    said = ask(programs, file, 'writemode on; clearrange "" \\xff')
    if said.returncode or "Committed" not in said.stdout:
        raise RuntimeError(f"{file} was not emptied: {said.stdout}{said.stderr}")


def options_in(directory):
    """What a server has to be told for data in a folder: it asks a file system in memory for what only disks have."""
    return ["--knob_disable_posix_kernel_aio=1"] if MEMORY in pathlib.Path(directory).parents else []


class Cluster:
    """`with Cluster(programs, directory) as cluster`: one server on the loopback address, empty, with
    its data in the directory, which it makes; the server ends with the block."""

    def __init__(self, programs, directory, *options, storage="ssd"):
        self.programs, self.dir = programs, pathlib.Path(directory)
        self.options, self.storage = (*options, *options_in(directory)), storage
        self.process = None
        self.address = f"127.0.0.1:{free_port()}"
        self.file = self.dir / "fdb.cluster"
        self.url = f"fdb:{self.file}"

    def start(self):
        with open(self.dir / "server.log", "a") as log:
            self.process = subprocess.Popen(
                [self.programs.server, "-p", self.address, "-C", self.file, "-d", self.dir / "data",
                 "-L", self.dir / "log", *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)

    def ask(self, command, seconds=60):
        return ask(self.programs, self.file, command, seconds)

    def configure(self):
        """Makes the database, and returns when it answers."""
        deadline = time.monotonic() + START_SECONDS
        made = False
        while True:
            if not made:
                said = self.ask(f"configure new single {self.storage}")
                made = said.returncode == 0 or "already exists" in said.stdout + said.stderr
            if made:
                said = self.ask("status minimal")
                if "is available" in said.stdout:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.programs.server} at {self.address} does not answer: "
                                   f"{said.stdout}{said.stderr}"
                                   f"{(self.dir / 'server.log').read_text()[-2000:]}")
            time.sleep(0.2)

    def __enter__(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        for name in ("data", "log"):
            (self.dir / name).mkdir(parents=True)
        self.file.write_text(f"test:test@{self.address}\n")
        self.start()
        try:
            self.configure()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def crash(self, seconds):
        self.kill()
        time.sleep(seconds)
        self.start()


def memory_available():
    found = re.search(r"^MemAvailable: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0


def has_room_in_memory(size):
    return MEMORY.is_dir() and min(shutil.disk_usage(MEMORY).free, memory_available()) >= size


@contextlib.contextmanager
def folder(directory, size):
    """An empty folder in memory where so much fits there, or else `directory`, emptied. The one in memory is always
    the same for a directory, so that what a killed run has left there goes with the next one."""
    path = pathlib.Path(directory).absolute()
    memory = MEMORY / f"frond-{hashlib.sha256(bytes(path)).hexdigest()[:16]}"
    for old in (path, memory):
        shutil.rmtree(old, ignore_errors=True)
    place = memory if has_room_in_memory(size) else path
    place.mkdir(mode=0o700, parents=True)
    try:
        yield place
    finally:
        if place == memory:
            shutil.rmtree(memory, ignore_errors=True)


@contextlib.contextmanager
def clusters(programs, directory, count, *options):
    """So many clusters, started side by side."""
    with contextlib.ExitStack() as stack:
        made = [Cluster(programs, pathlib.Path(directory) / str(n), *options, storage="memory")
                for n in range(count)]
        yield [stack.enter_context(cluster) for cluster in made]
