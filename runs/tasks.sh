#!/usr/bin/env bash
# What ELMo brings to each of the six tasks, with the built-in model: runs/tasks.sh DATA_DIR WORK_DIR
#
# DATA_DIR has the data sets named below, as directories or as .tar.xz (runs/README.md). Runs are
# kept in WORK_DIR: the same command goes on where it was stopped. The tables and the picture of
# docs/tasks.md end in WORK_DIR. SEEDS=1 for a quick look.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: runs/tasks.sh DATA_DIR WORK_DIR"
data=${1:?$usage}
work=${2:?$usage}
python=${PYTHON:-python}
seeds=${SEEDS:-2}
mkdir -p "$work/data"

# name, task, data set, end of its files' names, seeds, shares of the training set
comparisons="
squad      qa         qa-squad        .json   1       1
sick       nli        nli-sick        .jsonl  $seeds  1,0.1
srl        srl        srl-ewt         .jsonl  1       1
coref      coref      coref-litbank   -       $seeds  1
ner        ner        ner-conll2003   .conll  $seeds  1,0.1
sst5       sentiment  sentiment-sst5  .txt    $seeds  1
"

while read -r name task set end runs shares; do
    [ -n "$name" ] || continue
    found="$data/$set"
    if [ ! -d "$found" ]; then
        found="$work/data/$set"
        [ -d "$found" ] || tar -xJf "$data/$set.tar.xz" -C "$work/data"
    fi
    [ "$end" = - ] && end=""
    parts=()
    for share in ${shares//,/ }; do parts+=(--share "$share"); done
    echo "== $name"
    "$python" -m elmokit task compare "$task" --seeds "$runs" --out "$work/$name" "${parts[@]}" \
        --train "$found/train$end" --dev "$found/dev$end" --test "$found/test$end" </dev/null
done <<<"$comparisons"

"$python" "$here/tasks/page.py" "$work" --out "$work/tables.md" --picture "$work/tasks.svg"
