"""Build virtual environments for the other ELMo implementations, one per peer.

The peers cannot share an environment (TensorFlow 2.15 needs numpy 1, AllenNLP pins a torch of
2022), so each gets its own outside the repository, with pinned packages. The peers themselves are
installed without their dependencies; the packages that their ELMo modules import are listed here.

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
# Written last: an environment is complete if this file has the expected content.
STAMP = "elmokit-peer.txt"


@dataclass(frozen=True)
class Peer:
    """Contents of an environment: the implementation, and the packages that it imports."""

    package: str
    needs: tuple[str, ...]

    @property
    def pins(self) -> str:
        """Contents of the environment, one per line, to see whether it is up to date."""
        return "\n".join((self.package, *self.needs)) + "\n"


PEERS = {
    "allennlp": Peer(
        "allennlp==2.10.1",
        ("torch==2.13.0", "numpy==2.2.6", "h5py==3.13.0"),
    ),
    "simple_elmo": Peer(
        "simple_elmo==0.9.2",
        # scipy and pandas are dependencies of the package, but none of its modules imports them.
        ("tensorflow-cpu==2.15.1", "numpy==1.26.4", "h5py==3.11.0", "smart-open==7.1.0"),
    ),
    "manylangs": Peer(
        "elmoformanylangs==0.0.4.post2",
        ("torch==2.13.0", "numpy==2.2.6", "h5py==3.13.0", "overrides==3.1.0"),
    ),
}


def python_of(peer: str, directory: Path = CACHE) -> Path:
    """Return the path of the interpreter of a peer, which may not exist yet."""
    bin_dir, name = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return directory / peer / bin_dir / name


def ensure(peer: str, directory: Path = CACHE) -> Path:
    """Build the environment of a peer unless it is complete; return its interpreter."""
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
    """Build the environments named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "peers",
        nargs="*",
        metavar="peer",
        help=f"peers to install: {', '.join(PEERS)} (default: all)",
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=CACHE,
        help="directory of the environments (default: %(default)s)",
    )
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.peers) - set(PEERS)):
        parser.error(f"unknown peer: {', '.join(unknown)}; expected {', '.join(PEERS)}")
    for peer in arguments.peers or PEERS:
        print(peer, ensure(peer, arguments.dir))


if __name__ == "__main__":
    main()
