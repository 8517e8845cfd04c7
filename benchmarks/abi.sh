#!/usr/bin/env bash
# Instructions of the kernel with and without Python's stable ABI: benchmarks/abi.sh (needs Python 3.12 or newer).
#
# Builds the package twice, embeds the same sentences under callgrind, and prints the instructions of both. Instruction
# counts do not depend on what else the machine does. The engine is forced to AVX2, since valgrind knows no AVX-512.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/embed.py" <<'PYTHON'
from elmokit import Elmo

elmo = Elmo.load(threads=1)
sentence = "She went to the bank and the old man left the house before sunrise ."
for _ in range(20):
    elmo.embed([sentence])  # many calls of little work: the worst case for the ABI
PYTHON
for api in cp312 ""; do
    name=${api:-version}
    python3 -m venv "$work/$name"
    "$work/$name/bin/pip" install -q . -C wheel.py-api="$api" -C build-dir="$work/build-$name"
    ELMOKIT_ISA=avx2 valgrind --tool=callgrind --callgrind-out-file="$work/$name.out" \
        "$work/$name/bin/python" "$work/embed.py" 2> "$work/$name.log"
    echo "$name: $(grep -o 'Collected : [0-9]*' "$work/$name.log")"
done
