#!/usr/bin/env bash
# Run all analyses of the built-in model for docs/analyses.md: runs/analyses.sh DATA_DIR WORK_DIR
#
# DATA_DIR contains the data sets named below, as directories or .tar.xz files, and texts as .txt or
# .txt.xz (see runs/README.md). WordNet 3.0 must be in the directory WNSEARCHDIR, or installed as
# Debian's wordnet-base and wordnet-sense-index. Steps whose results are in WORK_DIR already are
# skipped, so the same command continues where it was stopped.
#
# Results: measurements in WORK_DIR/measured (copy *.json to src/elmokit/builtin/measured), the page in
# WORK_DIR/analyses.md and WORK_DIR/analyses/ (copy to docs), the report in WORK_DIR/report.html.
#
# Analyses of tasks that WORK_DIR does not have are shown as they were measured with the built-in model of
# elmokit 0.1.0 (analyses/0.1.0); the signatures at the end of the page say which.
#
# Environment: TASKS="ner nli" analyzes only these tasks, TASKS=none none; RUN=DIR is the directory of the model's
# training run, for its curve.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: runs/analyses.sh DATA_DIR WORK_DIR"
data=${1:?$usage}
work=${2:?$usage}
python=${PYTHON:-python}
elmo=("$python" -m elmokit)
out="$work/measured"
mkdir -p "$work/data" "$out"

set_of() { # Print the directory of a data set, after unpacking it if necessary.
    if [ -d "$data/$1" ]; then
        echo "$data/$1"
    else
        [ -d "$work/data/$1" ] || tar -xJf "$data/$1.tar.xz" -C "$work/data"
        echo "$work/data/$1"
    fi
}
text() { # Print the path of a text, plain or compressed.
    if [ -e "$data/$1.txt" ]; then echo "$data/$1.txt"; else echo "$data/$1.txt.xz"; fi
}
once() { # Run a command unless its measurement exists.
    local name=$1
    shift
    echo "== $name"
    [ -e "$out/$name.json" ] || "${elmo[@]}" "$@" --out "$out" </dev/null
}

# 1. Probe what each layer knows.
pos=$(set_of pos-ewt)
semcor=$(set_of wsd-semcor)
once pos probe pos --train "$pos/train.tsv" --test "$pos/dev.tsv" --test "$pos/test.tsv"
once wsd probe wsd --semcor "$semcor" --test "$(set_of wsd-raganato)"
once wsd-sentence probe wsd --semcor "$semcor" --test "$(set_of wsd-raganato)" --context sentence
if [ ! -e "$work/pairs.txt" ]; then
    "$python" "$here/analyses/pairs.py" "$semcor" --out "$work/pairs.txt" --gold "$work/gold.txt"
fi
once similarity probe similarity --pairs "$work/pairs.txt" --gold "$work/gold.txt"
once similarity-sentence probe similarity --pairs "$work/pairs.txt" --gold "$work/gold.txt" \
    --context sentence
once geometry probe geometry --corpus "$(text lm-en-test)"

# 2. Compare uses of words in context.
once neighbors-play neighbors play --corpus "$(text lm-en-train)" --words 1000000 \
    --in "Chico Ruiz made a spectacular play on Alusik's grounder ." \
    --in "Olivia De Havilland signed to do a Broadway play for Garson ."
once change change cell culture expression plate mouse current model host \
    water three because between found large known often \
    --then "$(text lm-en-test)" --now "$(text lm-biomed-test)"

# 3. Analyze what tasks use of ELMo. The analyses of a task share its training runs, also with
#    runs/tasks.sh in the same WORK_DIR, which trains the tasks without an analysis of their own.
analysis() { # analysis KIND TASK RUNS DATA END MORE…
    local kind=$1 task=$2 runs=$3 files end=$5
    [[ " ${TASKS:-nli ner srl qa} " == *" $task "* ]] || return 0
    files=$(set_of "$4")
    shift 5
    once "$kind-$task" analyze "$kind" "$task" --runs "$work/$runs" \
        --train "$files/train$end" --dev "$files/dev$end" --test "$files/test$end" "$@"
}
analysis layers nli sick nli-sick .jsonl --seeds 2
analysis layers ner ner ner-conll2003 .conll --seeds 3
analysis layers srl srl srl-ewt .jsonl --seeds 1
analysis layers qa squad qa-squad .json --seeds 1
analysis place nli sick nli-sick .jsonl --seeds 2
analysis place srl srl srl-ewt .jsonl --seeds 1
analysis place qa squad qa-squad .json --seeds 1
analysis efficiency srl srl10 srl-ewt .jsonl --seeds 1 --epochs 10
analysis efficiency ner ner ner-conll2003 .conll --seeds 2
analysis efficiency nli sick nli-sick .jsonl --seeds 2 --share 0.01 --share 0.1 --share 1
models=()
for model in "$work"/{squad,sick,srl,coref,ner,sst5}/elmo-[0-9]; do
    [ -e "$model/task.json" ] && models+=("$model")
done
if [ ${#models[@]} -gt 0 ]; then
    once weights analyze weights "${models[@]}"
fi

# 4. Store the training curve, and write the page and the report.
if [ -n "${RUN:-}" ] && [ ! -e "$out/training.json" ]; then
    "$python" "$here/analyses/training.py" builtin --run "$RUN" --out "$out"
fi
"$python" "$here/analyses/page.py" "$here/analyses/0.1.0" "$out" --out "$work/analyses.md"
"${elmo[@]}" report builtin --from "$out" --out "$work/report.html"
