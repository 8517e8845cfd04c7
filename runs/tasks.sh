#!/usr/bin/env bash
# Compares the six tasks without and with ELMo (built-in model): runs/tasks.sh DATA_DIR WORK_DIR
#
# DATA_DIR has the datasets named below, as directories or as .tar.xz (runs/README.md). Runs are
# stored in WORK_DIR, where the same command continues an interrupted one. The tables and the figure
# of docs/tasks.md are written to WORK_DIR. Set SEEDS=1 for a quick look.
#
# Baselines do not depend on the biLM, so those that were measured before (tasks/measured) are not trained
# again; BASELINES=new trains them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: runs/tasks.sh DATA_DIR WORK_DIR"
data=${1:?$usage}
work=${2:?$usage}
python=${PYTHON:-python}
mkdir -p "$work/data"

# name, task, dataset, extension of its files, seeds, shares of the training set
comparisons="
sick       nli        nli-sick        .jsonl  ${SEEDS:-3}  1,0.1
ner        ner        ner-conll2003   .conll  ${SEEDS:-3}  1,0.1
sst5       sentiment  sentiment-sst5  .txt    ${SEEDS:-3}  1
coref      coref      coref-litbank   -       ${SEEDS:-2}  1
squad      qa         qa-squad        .json   ${SEEDS:-2}  1
srl        srl        srl-ewt         .jsonl  ${SEEDS:-2}  1
"

while read -r name task dataset extension runs shares; do
    [ -n "$name" ] || continue
    directory="$data/$dataset"
    if [ ! -d "$directory" ]; then
        directory="$work/data/$dataset"
        [ -d "$directory" ] || tar -xJf "$data/$dataset.tar.xz" -C "$work/data"
    fi
    [ "$extension" = - ] && extension=""
    options=()
    for share in ${shares//,/ }; do options+=(--share "$share"); done
    if [ "${BASELINES:-measured}" = measured ]; then
        for run in "$here/tasks/measured/$name"/baseline-*; do
            if [ -d "$run" ] && [ ! -e "$work/$name/${run##*/}" ]; then
                mkdir -p "$work/$name"
                cp -r "$run" "$work/$name/"
            fi
        done
    fi
    echo "== $name"
    "$python" -m elmokit task compare "$task" --seeds "$runs" --out "$work/$name" "${options[@]}" \
        --train "$directory/train$extension" --dev "$directory/dev$extension" \
        --test "$directory/test$extension" </dev/null
done <<<"$comparisons"

"$python" "$here/tasks/page.py" "$work" --out "$work/tables.md" --picture "$work/tasks.svg"
