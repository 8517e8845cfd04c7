"""Disturbs training on several hosts, and compares the model with that of an undisturbed run.

    sudo python benchmarks/attack/hosts.py --cases 3
    sudo python benchmarks/attack/hosts.py --only cut --cases 20 --hosts 3

The hosts are network namespaces of this machine, joined by a bridge in a namespace of its own; they
share the disk. So it needs root and iproute2 (`ip`), and touches no other network; only `restart`
runs without. The kinds:

    restart        torchrun with two processes; one gets SIGKILL. torchrun restarts them.
    restart-hosts  torchrun on every host; a process of one gets SIGKILL.
    signal         one process per host, as srun starts them; one gets SIGTERM or SIGUSR1. All must
                   end with 0; then the same command again.
    cut            the same; a host is cut off without a word. All must end within the time limit,
                   with a message that says what happened and what to type; then the same command
                   again, with the host back.

At the end the model must be the same, byte for byte, as that of one undisturbed process.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tally import Tally, make_parser

KINDS = ("restart", "restart-hosts", "signal", "cut")
SECONDS = 240
"""Time after which a command hangs."""
TIMEOUT = 6
"""Seconds after which a process that does not answer is taken as lost."""
MARGIN = 40
"""Seconds beyond the timeout in which everybody has to stop; the machine may be busy."""
MODEL_FILES = ("model.safetensors", "config.json", "vocab.txt", "manifest.json")
WORDS = "ant bee cat dog elk fox gnu hen ibex jay kite lynx".split()
CONFIG = """{"char_cnn": {"filters": [[1, 4], [2, 5]], "n_highway": 1, "embedding": {"dim": 4},
"max_characters_per_token": 12, "n_characters": 261, "activation": "relu"}, "lstm": {"dim": 16,
"projection_dim": 8, "n_layers": 2, "use_skip_connections": true, "cell_clip": 3,
"proj_clip": 3}}"""
OPTIONS = ["--config", "options.json", "--epochs", "12", "--batch", "150", "--negatives", "10"]
PORT = 29_511


class Network:
    """Hosts with an interface `eth0` each, joined by a bridge."""

    def __init__(self, hosts: int) -> None:
        """Make the namespaces; `close` removes them."""
        if not hosts:
            return
        self.prefix = f"elmo{os.getpid()}"
        self.hosts = [f"{self.prefix}h{k}" for k in range(hosts)]
        self.switch = f"{self.prefix}sw"
        for name in (self.switch, *self.hosts):
            _ip("netns", "add", name)
        _ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", self.switch, "link", "set", "br0", "up")
        for k, host in enumerate(self.hosts):
            pair = ["type", "veth", "peer", "name", "eth0", "netns", host]
            _ip("-n", self.switch, "link", "add", f"port{k}", *pair)
            _ip("-n", self.switch, "link", "set", f"port{k}", "master", "br0", "up")
            _ip("-n", host, "address", "add", f"{self.address(k)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", host, "link", "set", device, "up")

    def address(self, host: int) -> str:
        """Return the address of a host."""
        return f"10.77.0.{host + 1}"

    def set_link(self, host: int, state: str) -> None:
        """Cut a host off ("down"), or connect it again ("up")."""
        _ip("-n", self.switch, "link", "set", f"port{host}", state)

    def start(
        self, host: int, command: list[str], directory: Path, log: str, **variables: str
    ) -> subprocess.Popen[bytes]:
        """Start a command on a host, under a name of its own."""
        named = f'hostname h{host}; exec "$@"'
        inside = ["ip", "netns", "exec", self.hosts[host], "unshare", "--uts", "sh", "-c", named]
        variables = {"GLOO_SOCKET_IFNAME": "eth0", **variables}
        return start([*inside, "sh", *command], directory, log, **variables)

    def close(self) -> None:
        """Remove the namespaces and everything in them."""
        for name in (*self.hosts, self.switch):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


# -- commands --------------------------------------------------------------------------------------


def start(
    command: list[str], directory: Path, log: str, **variables: str
) -> subprocess.Popen[bytes]:
    """Start a command in a directory, with its output in a log file."""
    threads = {"OMP_NUM_THREADS": "1"}
    with (directory / log).open("ab") as file:
        return subprocess.Popen(
            command, cwd=directory, stdout=file, stderr=file, env=os.environ | threads | variables
        )


def pretrain(*options: str) -> list[str]:
    """Return the arguments of `python` that train the model of this attack."""
    command = ["-m", "elmokit", "pretrain", "corpus", "--out", "out", *OPTIONS]
    return [*command, "--checkpoint-minutes", "0", "--timeout", str(TIMEOUT), *options]


def wait(processes: list[subprocess.Popen[bytes]], seconds: float = SECONDS) -> list[int]:
    """Return the exit codes; raise `AssertionError` if one does not end in time."""
    end = time.monotonic() + seconds
    try:
        return [process.wait(max(0.1, end - time.monotonic())) for process in processes]
    except subprocess.TimeoutExpired as error:
        for process in processes:
            for child in [*descendants(process.pid), process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        raise AssertionError(f"not ended after {seconds:.0f} seconds") from error


def descendants(process: int) -> list[int]:
    """Return all children of a process, and theirs."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True)
    children = [int(word) for word in found.stdout.split()]
    return [each for child in children for each in (*descendants(child), child)]


def workers(processes: list[subprocess.Popen[bytes]]) -> list[int]:
    """Return the processes that train, which torchrun has started."""
    return [
        child
        for process in processes
        for child in descendants(process.pid)
        if b"elmokit\0pretrain" in Path(f"/proc/{child}/cmdline").read_bytes()
        and b"torchrun" not in Path(f"/proc/{child}/cmdline").read_bytes()
        and b"torch.distributed" not in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def wait_for_steps(directory: Path, source: random.Random) -> None:
    """Wait until training has begun, and a random time more."""
    end = time.monotonic() + SECONDS
    while not list(directory.glob("out/training/checkpoints/step-*")):
        if time.monotonic() > end:
            raise AssertionError("no checkpoint was written")
        time.sleep(0.02)
    time.sleep(source.uniform(0, 2))


def logs(directory: Path) -> str:
    """Return the errors in all logs, and their ends."""
    found = []
    for path in sorted(directory.glob("log*")):
        text = path.read_text(errors="replace")
        found += [line for line in text.splitlines() if "elmo: " in line] + [text[-500:]]
    return "\n".join(found)


# -- kinds of cases --------------------------------------------------------------------------------


class Attack:
    """The undisturbed model, and cases."""

    def __init__(self, root: Path, network: Network, hosts: int, tally: Tally) -> None:
        """Train undisturbed, in one process."""
        self.root, self.network, self.tally = root, network, tally
        self.world = hosts
        self.shards = ["--shards", str(2 * self.world if self.world > 2 else 2)]
        source = random.Random(0)
        lines = [" ".join(source.choices(WORDS, k=source.randint(2, 8))) for _ in range(400)]
        (root / "text.txt").write_text("\n".join(lines) + "\n")
        (root / "options.json").write_text(CONFIG)
        corpus = [sys.executable, "-m", "elmokit", "corpus", "text.txt", "--tokenized"]
        subprocess.run([*corpus, "--out", "corpus"], cwd=root, check=True, capture_output=True)
        self.calm: dict[str, bytes] = {}
        if self.world == 2:
            command = [sys.executable, *pretrain(*self.shards)]
            codes = wait([start(command, self.new_case("calm"), "log")])
        else:  # sums of three numbers depend on their order, so with the same processes
            codes = wait(self.start_all(self.new_case("calm")))
        assert set(codes) == {0}, logs(root / "calm")
        self.calm = self.model(root / "calm")

    def new_case(self, name: str) -> Path:
        """Make a directory with everything that the command reads."""
        directory = self.root / name
        directory.mkdir()
        for file in ("corpus", "options.json"):
            (directory / file).symlink_to(self.root / file)
        return directory

    def model(self, directory: Path) -> dict[str, bytes]:
        """Return the files of the trained model."""
        return {name: (directory / "out" / name).read_bytes() for name in MODEL_FILES}

    def start_all(self, directory: Path) -> list[subprocess.Popen[bytes]]:
        """Start one process per host, as srun does."""
        variables = {"MASTER_ADDR": self.network.address(0), "MASTER_PORT": str(PORT)}
        return [
            self.network.start(
                rank,
                [sys.executable, *pretrain(*self.shards, "--auto-resume")],
                directory,
                f"log{rank}",
                RANK=str(rank),
                WORLD_SIZE=str(self.world),
                **variables,
            )
            for rank in range(self.world)
        ]

    def case(self, kind: str, number: int, source: random.Random) -> str | None:
        """Run one case; return what is wrong, if anything."""
        directory = self.new_case(f"{kind}-{number}")
        run = {
            "restart": self.restart,
            "restart-hosts": self.restart_hosts,
            "signal": self.send_signal,
            "cut": self.cut,
        }[kind]
        try:
            run(directory, source)
            if self.model(directory) != self.calm:
                return f"case {number}: another model than undisturbed"
        except (AssertionError, OSError) as error:
            return f"case {number}: {error!r}: {logs(directory)}"
        shutil.rmtree(directory)
        return None

    def kill_one(
        self, started: list[subprocess.Popen[bytes]], directory: Path, source: random.Random
    ) -> None:
        """Kill one of the processes that torchrun started; all must end by themselves."""
        try:
            wait_for_steps(directory, source)
            if found := workers(started):
                os.kill(source.choice(found), signal.SIGKILL)
                self.tally.outcomes["processes killed"] += 1
        finally:
            codes = wait(started)
        assert set(codes) == {0}, f"exit codes {codes}"

    def restart(self, directory: Path, source: random.Random) -> None:
        """Kill a process of torchrun on one host."""
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        launcher += [str(self.world), "--max-restarts", "3"]
        command = [sys.executable, *launcher, *pretrain(*self.shards)]
        started = start(command, directory, "log", GLOO_SOCKET_IFNAME="lo")
        self.kill_one([started], directory, source)

    def restart_hosts(self, directory: Path, source: random.Random) -> None:
        """Kill a process of torchrun on one of the hosts."""
        launcher = ["-m", "torch.distributed.run", "--nnodes", str(self.world)]
        launcher += ["--nproc-per-node", "1", "--max-restarts", "3", "--rdzv-backend", "c10d"]
        launcher += ["--rdzv-id", directory.name]
        launcher += ["--rdzv-endpoint", f"{self.network.address(0)}:{PORT}"]
        started = [
            self.network.start(
                k,
                [
                    *(sys.executable, *launcher, "--local-addr", self.network.address(k)),
                    *("--rdzv-conf", f"is_host={int(k == 0)}"),  # names are not resolved here
                    *pretrain(*self.shards),
                ],
                directory,
                f"log{k}",
            )
            for k in range(self.world)
        ]
        self.kill_one(started, directory, source)

    def send_signal(self, directory: Path, source: random.Random) -> None:
        """Send a signal of a scheduler to one process."""
        started = self.start_all(directory)
        try:
            wait_for_steps(directory, source)
            number = source.choice([signal.SIGTERM, signal.SIGUSR1])
            with contextlib.suppress(ProcessLookupError):
                os.kill(source.choice(started).pid, number)
        finally:
            codes = wait(started)
        assert set(codes) == {0}, f"exit codes {codes} after {number.name}"
        self.tally.outcomes[number.name] += 1
        codes = wait(self.start_all(directory))
        assert set(codes) == {0}, f"exit codes {codes} of the second start"

    def cut(self, directory: Path, source: random.Random) -> None:
        """Cut a host off."""
        started, host = self.start_all(directory), source.randrange(self.world)
        try:
            wait_for_steps(directory, source)
            self.network.set_link(host, "down")
            begin = time.monotonic()
            codes = wait(started, TIMEOUT + MARGIN)
        finally:
            self.network.set_link(host, "up")
        if set(codes) == {0}:
            self.tally.outcomes["ended before the cut"] += 1
        else:
            self.tally.outcomes["hosts cut off"] += 1
            slowest = max(self.tally.outcomes["slowest stop, s"], round(time.monotonic() - begin))
            self.tally.outcomes["slowest stop, s"] = slowest
            assert set(codes) == {1}, f"exit codes {codes} after host {host} was cut off"
            for rank in range(self.world):
                message = (directory / f"log{rank}").read_text(errors="replace")
                for part in ("elmo: error: ", "--auto-resume", "is kept"):
                    assert part in message, f"log{rank} lacks {part!r}"
        codes = wait(self.start_all(directory))
        assert set(codes) == {0}, f"exit codes {codes} of the second start"


@contextlib.contextmanager
def make_network(hosts: int) -> Iterator[Network]:
    """Make a network for the time of the block; one without hosts needs no rights."""
    if not hosts:
        yield Network(0)
        return
    if os.geteuid() != 0 or shutil.which("ip") is None:
        sys.exit("hosts.py makes network namespaces: run it as root, with iproute2 installed")
    network = Network(hosts)
    try:
        yield network
    finally:
        network.close()


def main() -> None:
    """Attack in all ways, or those of the command line."""
    parser = make_parser(__doc__ or "", KINDS, 3)
    parser.add_argument("--hosts", type=int, default=2, help="number of hosts (default: 2)")
    arguments = parser.parse_args()
    tally = Tally("hosts", arguments.seed, arguments.seconds)
    kinds = arguments.only or KINDS
    hosts = 0 if set(kinds) == {"restart"} and arguments.hosts == 2 else arguments.hosts
    with tempfile.TemporaryDirectory() as root, make_network(hosts) as network:
        attack = Attack(Path(root), network, arguments.hosts, tally)
        for kind in kinds:
            source = random.Random(f"{arguments.seed} {kind}")
            for number in range(arguments.cases):
                if tally.is_over:
                    break
                tally.add(kind, attack.case(kind, number, source))
            print(f"{kind}: {tally.counts[kind]} cases", flush=True)
    tally.finish()


if __name__ == "__main__":
    main()
