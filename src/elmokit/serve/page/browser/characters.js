// Words as the character ids that an exported model reads; see docs/onnx.md.

/** Ids (sentences × words × characters) of words, and the number of words of each sentence. */
export function encodeSentences(sentences, about) {
  const width = about.max_characters;
  const longest = Math.max(1, ...sentences.map((words) => words.length));
  const ids = new BigInt64Array(sentences.length * longest * width); // 0: no word
  sentences.forEach((words, b) => {
    words.forEach((word, t) => {
      const start = (b * longest + t) * width;
      ids.fill(BigInt(about.characters.padding), start, start + width);
      characterIds(word, about).forEach((id, c) => (ids[start + c] = BigInt(id)));
    });
  });
  return { ids, lengths: BigInt64Array.from(sentences, (words) => BigInt(words.length)), longest, width };
}

/** Ids of one word between its two marks, as an exported model counts them: from 1. */
export function characterIds(word, { characters }) {
  const marks = characters.sentence_mark_words ?? {};
  const inner = Object.hasOwn(marks, word)
    ? [marks[word]]
    : Array.from(new TextEncoder().encode(word).slice(0, characters.most_per_word), (byte) => byte + 1);
  return [characters.begin_word, ...inner, characters.end_word];
}
