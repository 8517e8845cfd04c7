#!/usr/bin/env bash
# Instructions of the kernel with and without Python's stable ABI: benchmarks/abi.sh (needs Python 3.12 or newer).
#
# Builds the package twice, embeds a sentence 10 and 110 times under callgrind, and prints the instructions of one call:
# the difference by 100. Many calls of little work are the worst case for the ABI. Instruction counts do not depend on
# what else the machine does. The engine is forced to AVX2, since valgrind knows no AVX-512.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))' ||
    { echo "python3 is $(python3 --version); expected 3.12 or newer: put one first in PATH"; exit 2; }
command -v valgrind > /dev/null || { echo "valgrind is not installed: apt-get install valgrind"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/embed.py" <<'PYTHON'
import sys

from elmokit import Elmo

elmo = Elmo.load(threads=1)
for _ in range(int(sys.argv[1])):
    elmo.embed(["She went to the bank and the old man left the house before sunrise ."])
PYTHON
for api in cp312 ""; do
    name=${api:-version}
    python3 -m venv "$work/$name"
    "$work/$name/bin/pip" install -q . -C wheel.py-api="$api" -C build-dir="$work/build-$name"
    counts=()
    for calls in 10 110; do
        ELMOKIT_ISA=avx2 valgrind --tool=callgrind --callgrind-out-file="$work/$name.out" \
            "$work/$name/bin/python" "$work/embed.py" "$calls" 2> "$work/$name.log"
        counts+=("$(grep -o 'Collected : [0-9]*' "$work/$name.log" | grep -o '[0-9]*$')")
    done
    echo "$name: $(((counts[1] - counts[0]) / 100)) instructions per call"
done
