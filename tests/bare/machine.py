"""An empty Debian 12 in a folder: made, unpacked, started as a machine of its own, ended.

It has its own processes, mounts and name, and the host's network. All mounts are in its own namespace, so
nothing of them is left however it ends. README.md tells what is cached, and what comes from the host."""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from foundationdb import die_with_parent, memory_available

SUITE = "bookworm"
# What README wants to be there, beside Debian; and ccache, which meson takes where it is installed.
PACKAGES = "git,make,sudo,ccache"
SERVICES = "systemd,systemd-sysv,dbus"  # a machine whose first process is systemd
BASE_DAYS = 30  # after which the base is made anew
USER = "someone"
CLONE = f"home/{USER}/frond"

# How the host reaches the network, and nothing else of it.
APT_NETWORK = re.compile(r"Acquire::(https?|Check-\w+|Retries|ForceIPv[46])\b.*;")
NPM_NETWORK = re.compile(r"((.*:)?(registry|_auth\w*)|proxy|https-proxy|noproxy|strict-ssl)\s*=")
PROXY = re.compile(r"(https?|all|no)_proxy", re.IGNORECASE)
CERTIFICATES = pathlib.Path("/usr/local/share/ca-certificates")

# What the machine takes is far less; where so much is available, it is there and no disk is in the way.
MEMORY_BYTES = 4 << 30

# Run in new namespaces, with the folder of the machine, its base, the folder of its packages, the bytes of memory
# that it may take, or "disk", what its first process is, and the folder of what was compiled. The shell that it ends
# as is the machine's first process, and reaps those that others leave behind.
START = r"""
set -eu
hostname bare
[ "$4" = disk ] || mount -t tmpfs -o mode=755,size="$4" machine "$1"
tar xf "$2" -C "$1" --numeric-owner --exclude="./dev/*"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount -t tmpfs -o mode=755 dev "$1/dev"
for device in null zero full random urandom tty; do
	touch "$1/dev/$device"
	mount --bind "/dev/$device" "$1/dev/$device"
done
mkdir "$1/dev/pts" "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$1/dev/pts"
mount -t tmpfs -o mode=1777 shm "$1/dev/shm"
ln -s pts/ptmx "$1/dev/ptmx"
ln -s /proc/self/fd "$1/dev/fd"
ln -s /proc/self/fd/0 "$1/dev/stdin"
ln -s /proc/self/fd/1 "$1/dev/stdout"
ln -s /proc/self/fd/2 "$1/dev/stderr"
mount -t tmpfs -o mode=755 run "$1/run"
mount --bind "$3" "$1/var/cache/apt/archives"
mkdir "$1/var/cache/compiled"
mount --bind "$6" "$1/var/cache/compiled"
[ "$5" = shell ] || exec sh -c "$BOOT" boot "$1"
exec chroot "$1" /bin/bash -c 'echo started; sleep infinity & wait'
"""

# The same with systemd, which wants a tree of groups of processes of its own.
BOOT = r"""
set -eu
umount -l "$1/sys"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t tmpfs -o mode=755 groups "$1/sys/fs/cgroup" 2>/dev/null || true
mount -t cgroup2 groups "$1/sys/fs/cgroup"
echo started
exec >/dev/null 2>&1 </dev/null
exec chroot "$1" /usr/bin/env -i container=frond PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system
"""
BOOT_SECONDS = 300  # only ends what hangs


class CannotBeMade(Exception):
    """Why there is no such machine on this host."""


def last_line(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def end_with_parent():
    """This program is asked to end, and cleans up, when the program that runs it is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def checked(done):
    if done.returncode:
        raise RuntimeError(f"{done.args} ended with {done.returncode}: {done.stderr}")
    return done


def in_namespaces(*command):
    return ["unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child",
            *map(str, command)]


def said_by(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


def sources():
    """The lines by which apt finds Debian 12 where this host does; none if it is no Debian 12."""
    found = []
    for line in said_by("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                        "Created-By: Packages").splitlines():
        _, uri, release, component = line.split()
        if (release in (SUITE, f"{SUITE}-updates", f"{SUITE}-security") and component == "main"
                and re.search("/debian(-security)?/$", uri)):
            found.append(line)
    return found if any(line.split()[2] == SUITE for line in found) else []


def apt_network():
    return [line for line in said_by("apt-config", "dump").splitlines() if APT_NETWORK.match(line)]


def proxies():
    return {name: value for name, value in os.environ.items() if PROXY.fullmatch(name)}


def npm_network():
    """Of npm's files, and of the variables that it takes for lines of them."""
    lines = [line for file in (pathlib.Path("/etc/npmrc"), pathlib.Path.home() / ".npmrc") if file.is_file()
             for line in file.read_text().splitlines()]
    for name, value in os.environ.items():
        if name.lower().startswith("npm_config_"):
            key = name[len("npm_config_"):].lower()
            lines.append(f"{key[0]}{key[1:].replace('_', '-')}={value}")
    return [line for line in lines if NPM_NETWORK.match(line)]


class Cache:
    """`with Cache() as cache`: what is kept between runs, and among clones of the tree. One run at a
    time has it, and so the ports of the machine's servers."""

    def __init__(self, say):
        self.say = say
        home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        self.dir = pathlib.Path(home, "frond", "bare")
        self.packages = self.dir / "packages"
        self.compiled = self.dir / "compiled"

    def __enter__(self):
        self.dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.packages.mkdir(exist_ok=True)
        self.compiled.mkdir(exist_ok=True)
        self.compiled.chmod(0o777)  # a user of the machine writes here; nobody of the host gets as far
        self.lock = open(self.dir / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.say(f"waiting for another run, which has {self.dir}")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_):
        self.lock.close()

    def base(self, scratch, boots=False):
        """The empty Debian as a tar file, made if there is none that is young and was made so."""
        options = ["--variant=minbase", f"--include={SERVICES if boots else PACKAGES}",
                   *(f"--aptopt={line}" for line in apt_network()), SUITE]
        lines = sources()
        key = hashlib.sha256(repr((options, lines)).encode()).hexdigest()[:16]
        kind = "service" if boots else "base"
        base = self.dir / f"{kind}-{key}.tar"
        if base.exists() and time.time() - base.stat().st_mtime < BASE_DAYS * 86400:
            return base
        self.say("making an empty Debian, which takes minutes")
        for old in self.dir.glob(f"{kind}-*"):
            old.unlink()
        made = base.with_suffix(".new")
        # The namespaces are for what mmdebstrap mounts and starts, should it be killed.
        done = subprocess.run(
            in_namespaces("--mount-proc", "mmdebstrap", "--mode=root", "--format=tar", *options, made,
                          *(["-"] if lines else [])),
            input="".join(f"{line}\n" for line in lines), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env=dict(os.environ, TMPDIR=str(scratch)), preexec_fn=die_with_parent)
        if done.returncode:
            made.unlink(missing_ok=True)
            errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            raise CannotBeMade(f"mmdebstrap makes no Debian: {(errors or [last_line(done.stderr)])[0]}")
        made.rename(base)
        return base


def check_host(tree):
    if not (tree / ".git").exists():
        raise CannotBeMade("the tree is no clone")
    if not shutil.which("mmdebstrap"):
        raise CannotBeMade("there is no mmdebstrap")
    if os.geteuid() != 0:
        raise CannotBeMade("a machine is made by root alone")
    done = subprocess.run(in_namespaces("mount", "-t", "tmpfs", "try", "/mnt"), capture_output=True, text=True)
    if done.returncode:
        raise CannotBeMade(f"no namespaces may be made: {last_line(done.stderr)}")


class Machine:
    """`with Machine(cache, directory) as machine`: running, with a user who may become root. With `boots` its
    first process is systemd, and there is no such user."""

    def __init__(self, cache, directory, on_disk=False, boots=False):
        self.boots = boots
        self.cache = cache
        self.dir = pathlib.Path(directory)  # all in it is the machine's
        self.on_disk = on_disk or memory_available() < 2 * MEMORY_BYTES
        self.root = None  # its folder, as seen from here
        self.process = None
        self.first = None  # of its processes, by its number here

    def __enter__(self):
        self.remove()
        scratch = self.dir / "scratch"
        scratch.mkdir(parents=True)
        try:
            self.start(self.cache.base(scratch, self.boots))
            self.furnish()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, error, *_):
        if error is None:
            self.root_runs("apt-get", "-q", "autoclean")
        self.end()

    def start(self, base):
        root = self.dir / "root"
        root.mkdir()
        self.process = subprocess.Popen(
            in_namespaces("sh", "-c", START, "start", root, base, self.cache.packages,
                          "disk" if self.on_disk else MEMORY_BYTES, "systemd" if self.boots else "shell",
                          self.cache.compiled),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, BOOT=BOOT), preexec_fn=die_with_parent)
        if self.process.stdout.readline() != "started\n":
            raise CannotBeMade(f"a machine does not start: {last_line(self.process.stderr.read())}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.first = int(children.read_text())
        self.root = pathlib.Path(f"/proc/{self.first}/root")
        if self.boots:
            self.await_boot()

    def await_boot(self):
        """Until systemd has started what there is; or it cannot be the first process here."""
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            said = subprocess.run(self.enter("systemctl", "is-system-running"), capture_output=True, text=True).stdout
            if said.strip() in ("running", "degraded"):
                return
            time.sleep(0.2)
        raise CannotBeMade("systemd does not start in namespaces of this host")

    def end(self):
        """All of its processes end with the first, and all of its mounts with the last of them."""
        if self.first:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.first, signal.SIGKILL)
        elif self.process:
            self.process.kill()
        if self.process:
            self.process.wait()
        self.remove()

    def remove(self):
        subprocess.run(["rm", "-rf", "--one-file-system", self.dir], check=True)

    def furnish(self):
        """A user, who has a place in the network, as the host has."""
        etc = self.root / "etc"
        (etc / "hostname").write_text("bare\n")
        (etc / "hosts").write_text("127.0.0.1 localhost bare\n::1 localhost\n")
        shutil.copyfile("/etc/resolv.conf", etc / "resolv.conf")
        # apt keeps what it has fetched, for the next run; a disk that need not outlive a power cut.
        (etc / "apt/apt.conf.d/90kept").write_text('Binary::apt::APT::Keep-Downloaded-Packages "true";\n')
        (etc / "dpkg/dpkg.cfg.d/90fast").write_text("force-unsafe-io\n")
        if CERTIFICATES.is_dir():
            shutil.copytree(CERTIFICATES, self.root / CERTIFICATES.relative_to("/"), dirs_exist_ok=True)
        variables = dict(proxies(), NPM_CONFIG_USERCONFIG="/run/npmrc", CCACHE_DIR="/var/cache/compiled")
        (etc / "environment").write_text("".join(f'{name}="{value}"\n' for name, value in variables.items()))
        if self.boots:
            return self.check_mirror()
        self.root_runs("useradd", "--create-home", "--shell", "/bin/bash", USER)
        sudoers = etc / "sudoers.d" / USER
        sudoers.write_text(f'Defaults env_keep += "{" ".join(variables)}"\n{USER} ALL=(ALL) NOPASSWD: ALL\n')
        sudoers.chmod(0o440)
        # Not on the disk: there may be a password among them.
        self.root_runs("install", "-o", USER, "-m", "600", "/dev/stdin", "/run/npmrc",
                       input="".join(f"{line}\n" for line in npm_network()))
        self.check_mirror()

    def check_mirror(self):
        uris = re.findall(r"^'([^']*InRelease)'", self.root_runs("apt-get", "--print-uris", "update").stdout, re.M)
        got = self.root_runs("/usr/lib/apt/apt-helper", "download-file", uris[0], "/run/InRelease", check=False)
        if got.returncode:
            raise CannotBeMade(f"no mirror of Debian answers: {last_line(got.stdout)}")

    def clone(self, tree):
        bundle = checked(subprocess.run(["git", "bundle", "create", "-", "HEAD"], cwd=tree, capture_output=True))
        self.root_runs("tee", "/run/frond.bundle", input=bundle.stdout, text=False)
        self.root_runs("su", "-", USER, "-c", f"git clone --quiet /run/frond.bundle /{CLONE}")

    def chosen(self):
        """The packages that somebody has asked for, and which are not there for others' sake."""
        return set(self.root_runs("apt-mark", "showmanual").stdout.split())

    def enter(self, *command):
        return ["nsenter", "--target", str(self.first), "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--root",
                "--wd=/", *command]

    def root_runs(self, *command, input="", check=True, text=True):
        done = subprocess.run(self.enter(*command), input=input, capture_output=True, text=text,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"})
        return checked(done) if check else done

    def user_runs(self, line):
        """The command by which the user has a shell run this line in the clone."""
        return self.enter("su", "-", USER, "-c", f"cd /{CLONE} && {line}")
