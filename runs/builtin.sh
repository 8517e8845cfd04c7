#!/usr/bin/env bash
# Make the built-in English model, from text to model card: runs/builtin.sh DATA_DIR WORK_DIR
#
# DATA_DIR contains lm-en-{train,more,valid,test}, lm-biomed-{train,valid,test} and pos-ewt (see
# runs/README.md). Steps whose results are in WORK_DIR already are skipped, so the same command
# continues where it was stopped. The model and its card are written to WORK_DIR/model; copy them to
# src/elmokit/builtin.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: runs/builtin.sh DATA_DIR WORK_DIR"
data=${1:?$usage}
work=${2:?$usage}
python=${PYTHON:-python}
elmo=("$python" -m elmokit)
mkdir -p "$work"

text() { # Print the path of a text, plain or compressed.
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
more=$(text lm-en-more)
valid=$(text lm-en-valid)
biomed_train=$(text lm-biomed-train)
biomed_valid=$(text lm-biomed-valid)

pretrain() { # pretrain CORPUS RUN OPTIONS…: train for hours, or continue a run that was stopped.
    if [ ! -e "$2/manifest.json" ]; then
        "${elmo[@]}" pretrain "$1" --out "$2" --shards 2 --seed 0 --auto-resume "${@:3}"
    fi
}

# All randomness comes from the seed. Two shards are part of the recipe, so that the result does not
# depend on the number of processors.

# 1. Train a smaller model first, of 2x512 cells with a width of 128: the built-in model of elmokit
#    0.1.0, in src/elmokit/builtin of that version. It was started with a budget of 200 M words, and
#    resumed with another one at 16.6 M words and with this one at 27.5 M, while the learning rate was
#    constant anyway: it is the same run, except that its warm-up was longer.
if [ ! -e "$work/first-corpus/corpus.json" ]; then
    "${elmo[@]}" corpus "$train" --valid "$valid" --size 30000 --out "$work/first-corpus"
fi
pretrain "$work/first-corpus" "$work/first-run" --size tiny --tokens 37000000 --rate 0.005 \
    --schedule trapezoid
if [ ! -e "$work/first/manifest.json" ]; then
    "$python" "$here/builtin/pack.py" "$work/first-run" "$work/first"
fi

# 2. Widen it, and train on more text with the same vocabulary.
if [ ! -e "$work/corpus/corpus.json" ]; then
    "${elmo[@]}" corpus "$train" "$more" --valid "$valid" --vocabulary "$work/first/vocab.txt" \
        --out "$work/corpus"
fi
pretrain "$work/corpus" "$work/second-run" --start "$work/first" \
    --config "$here/builtin/config.json" --optimizer muon --tokens 12000000 --rate 0.004 --warm-up 100
if [ ! -e "$work/second/manifest.json" ]; then
    "$python" "$here/builtin/pack.py" "$work/second-run" "$work/second"
fi

# 3. Train on passages of several sentences.
pretrain "$work/corpus" "$work/run" --start "$work/second" --optimizer muon --text passages \
    --products bfloat16 --tokens 36000000 --rate 0.004 --warm-up 100 --seed 1

# 4. Pack in float16 for the package, and measure what that costs.
if [ ! -e "$work/packed.json" ]; then
    "$python" "$here/builtin/pack.py" "$work/run" "$work/model" --data "$data" \
        --report "$work/packed.json"
fi

# 5. Adapt the model to biomedical articles, for the table of before and after.
if [ ! -e "$work/biomed/manifest.json" ]; then
    "${elmo[@]}" finetune "$work/model" "$biomed_train" --valid "$biomed_valid" \
        --out "$work/biomed" --epochs 1 --products bfloat16 --shards 2 --seed 0
fi

# 6. Measure the model and write its card.
if [ ! -e "$work/measured.json" ]; then
    "$python" "$here/builtin/measure.py" "$work/model" --adapted "$work/biomed" --data "$data" \
        --out "$work/measured.json"
fi
"$python" "$here/builtin/card.py" "$work/model" --run "$work/run" --corpus "$work/corpus" \
    --measured "$work/measured.json" --packed "$work/packed.json" --out "$work/model/README.md"
