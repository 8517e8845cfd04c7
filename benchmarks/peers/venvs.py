"""Virtual environments for the other ELMo implementations, one for each peer.

The peers cannot live together (TensorFlow 2.15 wants numpy 1, AllenNLP pins a torch of 2022), so
each gets an environment of its own outside the repository, with pinned packages. The peers
themselves are installed without their dependencies: what their ELMo files import is listed here.

    python benchmarks/peers/venvs.py                  # all three, under ~/.cache/elmokit/peers
    python benchmarks/peers/venvs.py allennlp --dir /some/where
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

CACHE = Path.home() / ".cache" / "elmokit" / "peers"
# Written last into an environment: a file with the right content means that it is complete.
STAMP = "elmokit-peer.txt"


@dataclass(frozen=True)
class Peer:
    """What one environment holds: the implementation, and the packages that its files import."""

    package: str
    needs: tuple[str, ...]

    @property
    def pins(self) -> str:
        """The environment's content in one line each, to see whether it is up to date."""
        return "\n".join((self.package, *self.needs)) + "\n"


PEERS = {
    "allennlp": Peer(
        "allennlp==2.10.1",
        ("torch==2.13.0", "numpy==2.2.6", "h5py==3.13.0"),
    ),
    "simple_elmo": Peer(
        "simple_elmo==0.9.2",
        # scipy and pandas are named by the package but imported by none of its files.
        ("tensorflow-cpu==2.15.1", "numpy==1.26.4", "h5py==3.11.0", "smart-open==7.1.0"),
    ),
    "manylangs": Peer(
        "elmoformanylangs==0.0.4.post2",
        ("torch==2.13.0", "numpy==2.2.6", "h5py==3.13.0", "overrides==3.1.0"),
    ),
}


def python_of(peer: str, directory: Path = CACHE) -> Path:
    """The interpreter of a peer's environment (which may not exist yet)."""
    bin_dir, name = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return directory / peer / bin_dir / name


def ensure(peer: str, directory: Path = CACHE) -> Path:
    """Build a peer's environment unless it is there and complete; return its interpreter."""
    wanted = PEERS[peer]
    home = directory / peer
    python = python_of(peer, directory)
    stamp = home / STAMP
    if stamp.is_file() and stamp.read_text() == wanted.pins:
        return python
    stamp.unlink(missing_ok=True)
    print(f"{peer}: building {home}", file=sys.stderr)
    venv.EnvBuilder(clear=True, with_pip=True).create(home)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *wanted.needs], check=True, stdout=sys.stderr)
    subprocess.run([*pip, "--no-deps", wanted.package], check=True, stdout=sys.stderr)
    stamp.write_text(wanted.pins)
    return python


def main() -> None:
    """Command line: build the environments that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("peers", nargs="*", metavar="peer", help=f"of {', '.join(PEERS)} (all)")
    parser.add_argument("--dir", type=Path, default=CACHE, help="where they live (%(default)s)")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.peers) - set(PEERS)):
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    for peer in arguments.peers or PEERS:
        print(peer, ensure(peer, arguments.dir))


if __name__ == "__main__":
    main()
