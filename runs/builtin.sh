#!/usr/bin/env bash
# Make the built-in English model again, from text to model card: runs/builtin.sh DATA_DIR WORK_DIR
#
# DATA_DIR has lm-en-{train,valid,test}, lm-biomed-{train,valid,test} and pos-ewt (runs/README.md).
# What is there already in WORK_DIR is not made again: the same command goes on where it was stopped.
# The model and its card end in WORK_DIR/model, to be copied into src/elmokit/builtin.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: runs/builtin.sh DATA_DIR WORK_DIR"
data=${1:?$usage}
work=${2:?$usage}
python=${PYTHON:-python}
elmo=("$python" -m elmokit)
mkdir -p "$work"

text() { # The file of a text, plain or compressed.
    for name in "$data/$1.txt" "$data/$1.txt.xz"; do
        if [ -e "$name" ]; then
            echo "$name"
            return
        fi
    done
    echo "$data has no $1.txt or $1.txt.xz" >&2
    return 1
}

train=$(text lm-en-train)
valid=$(text lm-en-valid)
biomed_train=$(text lm-biomed-train)
biomed_valid=$(text lm-biomed-valid)

# 1. Sentences, words, a vocabulary.
if [ ! -e "$work/corpus/corpus.json" ]; then
    "${elmo[@]}" corpus "$train" --valid "$valid" --size 30000 --out "$work/corpus"
fi

# 2. Hours. All that is random comes from the seed; two shards are a part of the recipe, so that the
#    result does not depend on the number of processors. The model in the package was begun with a
#    budget of 200 M words and resumed with others at 16.6 M and, with this one, at 27.5 M, while the
#    rate was constant in any case; the same but for a warm-up that was longer.
if [ -e "$work/run/training/run.json" ]; then
    if [ ! -e "$work/run/manifest.json" ]; then
        "${elmo[@]}" pretrain "$work/corpus" --out "$work/run" --resume
    fi
else
    "${elmo[@]}" pretrain "$work/corpus" --out "$work/run" --size tiny --tokens 37000000 \
        --rate 0.005 --schedule trapezoid --shards 2 --seed 0
fi

# 3. float16, as it goes into the package, and what that costs.
if [ ! -e "$work/packed.json" ]; then
    "$python" "$here/builtin/pack.py" "$work/run" "$work/model" --data "$data" \
        --report "$work/packed.json"
fi

# 4. The same model adapted to biomedical articles, for the table of before and after.
if [ ! -e "$work/biomed/manifest.json" ]; then
    "${elmo[@]}" finetune "$work/model" "$biomed_train" --valid "$biomed_valid" \
        --out "$work/biomed" --tokens 2000000 --shards 2 --seed 0
fi

# 5. What it knows, and the card.
if [ ! -e "$work/measured.json" ]; then
    "$python" "$here/builtin/measure.py" "$work/model" --adapted "$work/biomed" --data "$data" \
        --out "$work/measured.json"
fi
"$python" "$here/builtin/card.py" "$work/model" --run "$work/run" --corpus "$work/corpus" \
    --measured "$work/measured.json" --packed "$work/packed.json" --out "$work/model/README.md"
