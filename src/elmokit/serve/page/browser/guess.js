// What both directions expect at a place, from the top layer and the softmax.

const BEST = 12;

/** Like `guess_word` of guesses.py. `top` has the top layer at every mark and word. */
export function guessWord({ tensors, vocabulary, top, dim, position, words, others }) {
  const weight = tensors["softmax.weight"], bias = tensors["softmax.bias"];
  const half = dim / 2;
  // Before the place is row `position` (the first is the mark), after it row `position + 2`.
  const forward = logProbabilities(weight, bias, top.subarray(position * dim, position * dim + half), half);
  const backward = logProbabilities(weight, bias, top.subarray((position + 2) * dim + half, (position + 3) * dim), half);
  const marks = ["<S>", "</S>"].map((mark) => vocabulary.index.get(mark));
  const both = forward.map((value, i) => value + backward[i]);
  for (const mark of marks) both[mark] = -Infinity;
  normalize(both);
  const ranked = [words[position], ...others];
  const unknown = vocabulary.index.get("<UNK>");
  const ids = ranked.map((word) => vocabulary.index.get(word) ?? unknown);
  const ranking = (scores) => {
    const own = ids.map((id) => scores[id]);
    for (const mark of marks) scores[mark] = -Infinity;
    return {
      best: bestOf(scores).map((i) => [vocabulary.words[i], Math.exp(scores[i])]),
      ranks: own.map((score) => 1 + scores.reduce((n, each) => n + (each > score), 0)),
      probabilities: own.map(Math.exp),
    };
  };
  return {
    words: ranked.map((word, k) => ({ word, known: vocabulary.words[ids[k]] })),
    vocabulary: bias.length,
    forward: ranking(forward),
    backward: ranking(backward),
    both: ranking(both),
  };
}

function logProbabilities(weight, bias, x, width) {
  const out = new Float64Array(bias.length);
  for (let v = 0; v < out.length; v++) {
    let sum = bias[v];
    for (let p = 0, at = v * width; p < width; p++, at++) sum += weight[at] * x[p];
    out[v] = sum;
  }
  return normalize(out);
}

function normalize(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  let total = 0;
  for (const score of scores) total += Math.exp(score - largest);
  const log = largest + Math.log(total);
  for (let i = 0; i < scores.length; i++) scores[i] -= log;
  return scores;
}

function bestOf(scores) {
  const best = [];
  for (let i = 0; i < scores.length; i++) {
    if (best.length === BEST && scores[i] <= scores[best[BEST - 1]]) continue;
    let at = best.length;
    while (at > 0 && scores[best[at - 1]] < scores[i]) at--;
    best.splice(at, 0, i);
    best.length = Math.min(best.length, BEST);
  }
  return best.filter((i) => scores[i] > -Infinity);
}
