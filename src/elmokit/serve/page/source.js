// Where the page's numbers come from: a server, or the model in this browser.
//
// Both are objects with the same methods; vectors are { words, layers, count, dim }, where `layers`
// is a flat Float32Array of count × words × dim numbers, layer 0 being that of the characters:
//
//   info()                                        models, tasks, samples
//   layers(model, { sentence } or { words })      all layers of a sentence
//   uses(model, word, sentences)                  all layers of one word in many sentences
//   guess(model, words, position, others)         what both directions expect at a place
//   neighbors(model, words, position, options)    nearest uses in a corpus, nearest by characters
//   trace(model, words, position)                 every number on the way of a word
//   predict(task, texts)                          predictions of a task model

/** Open the source that the page was made for. */
export async function openSource() {
  const kind = document.querySelector('meta[name="elmo-source"]')?.content;
  if (kind === "browser") {
    const { BrowserSource } = await import("./browser/source.js");
    return BrowserSource.open();
  }
  const { ServerSource } = await import("./server-source.js");
  return new ServerSource();
}

/** An answer that is an error: its message is for the user. */
export class SourceError extends Error {}

/** The header and the arrays of a binary message; see array_message.py. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  for (const [name, { shape, offset }] of Object.entries(header.arrays)) {
    const size = shape.reduce((a, b) => a * b, 1);
    arrays[name] = new Float32Array(buffer, 4 + length + 4 * offset, size);
    arrays[name].shape = shape;
  }
  return { header, arrays };
}
