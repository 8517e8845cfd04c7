"""Takes disk space, permissions, memory and file handles away from commands, at any scale.

    python benchmarks/attack/resources.py --cases 100
    python benchmarks/attack/resources.py --only memory --cases 10000 --seed 7

A case runs a command of `kill.py` with one resource missing, at random how much of it:

full        a disk that is full after so many bytes or files: a small tmpfs where this process may
            mount one, else files that may not grow (RLIMIT_FSIZE)
read-only   a directory in which nothing can be written
forbidden   a file of the input, or the directory, that may not be read
memory      so many bytes of memory more than the process has already (RLIMIT_AS)
handles     so many open files (RLIMIT_NOFILE)

The command must succeed, or fail with one line that begins with `elmo: error:`, without a traceback
or a crash. Outputs that were finished before must be intact. Then the resource is given back, and
the same command must finish with the files of an undisturbed run, byte for byte.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import kill
from kill import TINY, Scenario, contents, make_material, run, scenarios
from sandbox import limit_memory
from tally import Tally, parse_arguments

from elmokit import Elmo
from elmokit.bilm.random import random_bilm
from elmokit.vectors import embed_to_file

KINDS = ["full", "read-only", "forbidden", "memory", "handles"]
_CAPABILITY_VERSION = 0x20080522
THREAD_FAILED = "Exception ignored in thread started by"
"""What CPython prints when a new thread has no memory; `Thread.start` of 3.11 waits for ever then,
whatever the program does. Such cases are counted, but are no findings."""
RUN_SECONDS = 100
"""Time after which a command hangs; far more than one takes, since the machine may be busy."""
SERVER_SECONDS = 3.0
"""Time after which a server that has not failed is taken for started."""
DISK_BYTES = 64 << 20
"""Size of the small disk."""
MOST_MEMORY = 192 << 20
"""Memory at most, in bytes, that a command gets beyond what it has."""
MOST_HANDLES = 40
"""Number of open files at most that a command gets beyond the three that everybody has."""


def more_scenarios(address: str) -> dict[str, Scenario]:
    """Return the commands: those of `kill.py`, a file that is replaced, and the server."""
    chosen = {name: each for name, each in scenarios(address).items() if "again" not in name}
    return {**chosen, "embed-force": replace_vectors(), "server": Scenario(_serve)}


def _serve(directory: Path) -> list[str]:
    return ["serve", "--model", "model", "--port", "0"]


def replace_vectors() -> Scenario:
    """Embed a text over the vectors of another one."""

    def setup(directory: Path) -> None:
        elmo = Elmo(random_bilm(TINY, seed=1), threads=1)
        embed_to_file(elmo, [["an", "earlier", "text"]], directory / "out.h5")

    command = ["embed", "-m", "model", "--threads", "1", "--file", "text.txt", "--out", "out.h5"]
    return Scenario(lambda directory: [*command, "--force"], setup=setup)


class Command:
    """One command with its undisturbed result."""

    def __init__(self, name: str, scenario: Scenario, root: Path, material: Path) -> None:
        """Run the command undisturbed, unless it is the server, which has no result."""
        self.name, self.scenario, self.root, self.material = name, scenario, root, material
        self.wanted: dict[str, str] = {}
        self.bytes = 0
        if name != "server":
            directory = self.new_directory(root / f"{name}-calm")
            self.finish(directory)
            self.wanted = contents(directory, scenario.compare)
            self.bytes = sum(p.stat().st_size for p in directory.rglob("*") if p.is_file())
            shutil.rmtree(directory)

    def new_directory(self, directory: Path) -> Path:
        """Make a directory with copies of everything that the command reads."""
        directory.mkdir()
        for path in self.material.iterdir():
            (directory / path.name).symlink_to(path)
        os.environ["ELMOKIT_CACHE"] = str(directory / "cache")
        self.scenario.setup(directory)
        return directory

    def finish(self, directory: Path) -> None:
        """Run the command to its end; raise `AssertionError` if it fails."""
        log = self.root / "calm.log"
        log.unlink(missing_ok=True)
        code = run(self.scenario.arguments(directory), directory, None, None, log=log)
        assert code == 0, f"it fails with enough of everything: {log.read_text()[-1500:]}"

    def attack(self, directory: Path, prepare: Callable[[], None], tally: Tally) -> str | None:
        """Run the command with something missing; return what is wrong, if anything."""
        log = self.root / "log"
        log.unlink(missing_ok=True)
        log.touch()
        log.chmod(0o666)
        before = contents(directory, ("out*",))
        arguments = self.scenario.arguments(directory)
        delay = SERVER_SECONDS if self.name == "server" else None
        try:
            code = run(arguments, directory, None, delay, log=log, prepare=prepare)
        except TimeoutError as error:
            said = log.read_text(errors="replace")
            if THREAD_FAILED in said:
                tally.outcomes["Python waits for ever for a thread that has no memory"] += 1
                return None
            return f"{error}: {said[-600:]}"
        said = log.read_text(errors="replace")
        if "Traceback" in said or (code < 0 and delay is None) or code not in (0, 1, -9):
            return f"exit code {code}: {said[-1200:]}"
        tally.outcomes["failed" if code == 1 else "succeeded"] += 1
        if code == 1:
            errors = [line for line in said.splitlines() if line.startswith("elmo: error: ")]
            if len(errors) != 1 or not said.rstrip().endswith(errors[0]):
                return f"not one clear line at the end: {said[-1200:]}"
        after = contents(directory, ("out*",))
        changed = {name for name, digest in before.items() if after.get(name) != digest}
        if changed and any(after.get(name) != self.wanted.get(name) for name in changed):
            return f"what was finished before is not intact: {sorted(changed)}: {said[-300:]}"
        return None


# -- what is missing ---------------------------------------------------------------------------


class Attack:
    """All commands, and the small disk."""

    def __init__(self, root: Path, material: Path, address: str, tally: Tally) -> None:
        """Mount the small disk, if that is possible."""
        self.root, self.material, self.tally = root, material, tally
        self.scenarios = more_scenarios(address)
        self.commands: dict[str, Command] = {}
        self.disk = root / "disk"
        self.disk.mkdir()
        self.can_mount = os.geteuid() == 0 and _mount(self.disk, f"size={DISK_BYTES}")

    def close(self) -> None:
        """Unmount the small disk."""
        if self.can_mount:
            subprocess.run(["umount", "-l", str(self.disk)], check=False)

    def command(self, number: int) -> Command:
        """Return the command of a case."""
        name = list(self.scenarios)[number % len(self.scenarios)]
        if name not in self.commands:
            self.commands[name] = Command(name, self.scenarios[name], self.root, self.material)
        return self.commands[name]

    def case(self, kind: str, number: int, source: random.Random) -> str | None:
        """Do a case; return what is wrong, if anything."""
        try:
            command = self.command(number)
        except AssertionError as error:
            return f"case {number}: {error}"
        place = self.disk if kind == "full" and self.can_mount else self.root
        directory = command.new_directory(place / f"case-{number}")
        try:
            with getattr(self, kind.replace("-", "_"))(command, directory, source) as (what, limit):
                finding = command.attack(directory, limit, self.tally)
            if finding is None:
                command.scenario.check(directory)
            if finding is None and command.wanted:
                command.finish(directory)
                found = contents(directory, command.scenario.compare)
                if found != command.wanted:
                    finding = "other files in the end"
        except Exception as error:
            finding = repr(error)[:1500]
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return f"case {number}, {command.name}, {what}: {finding}" if finding else None

    @contextlib.contextmanager
    def full(
        self, command: Command, directory: Path, source: random.Random
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """Leave so many bytes or files on the disk."""
        size = source.choice((0, 4096, source.randrange(max(1, command.bytes * 3 // 2))))
        if not self.can_mount:
            yield f"files of {size} bytes", lambda: _limit(resource.RLIMIT_FSIZE, size)
            return
        status = os.statvfs(self.disk)
        if source.random() < 0.25:
            more = source.randrange(8)
            _mount(self.disk, f"remount,nr_inodes={status.f_files - status.f_ffree + more}")
            try:
                yield f"{more} files more", lambda: None
            finally:
                _mount(self.disk, f"remount,nr_inodes={status.f_files}")
            return
        filler = self.disk / "filler"
        with filler.open("wb") as file:
            os.posix_fallocate(
                file.fileno(), 0, max(1, status.f_bavail * status.f_bsize - size // 4096 * 4096)
            )
        try:
            yield f"{size} bytes left", lambda: None
        finally:
            filler.unlink()

    @contextlib.contextmanager
    def read_only(
        self, command: Command, directory: Path, source: random.Random
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """Forbid writing in the directory."""
        directory.chmod(0o555)
        try:
            yield "nothing can be written", give_up_permissions
        finally:
            directory.chmod(0o755)

    @contextlib.contextmanager
    def forbidden(
        self, command: Command, directory: Path, source: random.Random
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """Forbid reading a file of the input, or the directory."""
        name = source.choice([*sorted(path.name for path in directory.iterdir()), ""])
        path = directory / name
        if path.is_symlink():  # a copy, since other cases read the original
            original = path.resolve()
            path.unlink()
            if original.is_dir():
                shutil.copytree(original, path)
                path = source.choice([path, *sorted(path.iterdir())])
            else:
                shutil.copy(original, path)
        mode = path.stat().st_mode
        path.chmod(0)
        try:
            yield f"{path.relative_to(directory)} cannot be read", give_up_permissions
        finally:
            path.chmod(mode)

    @contextlib.contextmanager
    def memory(
        self, command: Command, directory: Path, source: random.Random
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """Leave so many bytes of memory."""
        more = source.choice((0, 1 << 20, source.randrange(MOST_MEMORY)))
        yield f"{more:,} bytes of memory", lambda: limit_memory(more)

    @contextlib.contextmanager
    def handles(
        self, command: Command, directory: Path, source: random.Random
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """Leave so many handles of files."""
        more = source.randrange(MOST_HANDLES)
        yield f"{more} handles", lambda: _limit(resource.RLIMIT_NOFILE, _open_files() + more)


def give_up_permissions() -> None:
    """Let the permissions of files count for the user root as they do for others."""
    if os.geteuid() == 0:
        header = struct.pack("<Ii", _CAPABILITY_VERSION, 0)
        if ctypes.CDLL(None, use_errno=True).capset(header, bytes(24)):
            raise OSError(ctypes.get_errno(), "capset")


def _open_files() -> int:
    """Return the lowest number that the next file could get."""
    return max(int(name) for name in os.listdir("/proc/self/fd")) if Path("/proc").exists() else 8


def _limit(what: int, value: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(what, (value, value))


def _mount(disk: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def main() -> None:
    """Attack with all kinds, or those of the command line."""
    arguments = parse_arguments(__doc__, KINDS, 20, numbered=True)
    import torch  # before the forks, which have one thread

    torch.set_num_threads(1)
    kill.SECONDS = RUN_SECONDS
    warnings.simplefilter("ignore")
    tally = Tally("resources", arguments.seed, arguments.seconds)
    with make_material() as (material, address), tempfile.TemporaryDirectory() as name:
        for path in (Path(name), material):
            path.chmod(0o755)
        attack = Attack(Path(name), material, address, tally)
        try:
            for kind in arguments.only or KINDS:
                for number in range(arguments.first, arguments.first + arguments.cases):
                    if tally.is_over:
                        break
                    source = random.Random(f"{arguments.seed} {kind} {number}")
                    tally.add(kind, attack.case(kind, number, source))
        finally:
            attack.close()
    tally.finish()


if __name__ == "__main__":
    main()
