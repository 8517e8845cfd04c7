// The page's numbers from the server that sent the page.

import { SourceError, unpack } from "./source.js";

const KEPT = 64;

/** Answers of the server, the last ones remembered. */
export class ServerSource {
  #answers = new Map();

  info() {
    return this.#ask("info");
  }

  async layers(model, sentence) {
    const { header, arrays } = await this.#ask("layers", { model, ...sentence });
    return vectors(header.words, arrays.layers);
  }

  async uses(model, word, sentences) {
    const { header, arrays } = await this.#ask("uses", { model, word, sentences });
    return { ...vectors(header.uses, arrays.layers), uses: header.uses, without: header.without };
  }

  guess(model, words, position, others = []) {
    return this.#ask("guess", { model, words, position, others });
  }

  neighbors(model, words, position, { mix, index, number = 10 }) {
    return this.#ask("neighbors", { model, words, position, mix, index, number });
  }

  async trace(model, words, position) {
    return this.#ask("trace", { model, words, position });
  }

  async predict(task, texts) {
    return (await this.#ask("tasks", { task, texts })).records;
  }

  /** Ask the server, unless the same was asked a moment ago. */
  #ask(name, body) {
    const key = `${name} ${JSON.stringify(body)}`;
    if (!this.#answers.has(key)) {
      const answer = this.#fetch(name, body);
      answer.catch(() => this.#answers.delete(key));
      this.#answers.set(key, answer);
      if (this.#answers.size > KEPT) this.#answers.delete(this.#answers.keys().next().value);
    }
    return this.#answers.get(key);
  }

  async #fetch(name, body) {
    let response;
    try {
      response = await fetch(`page/${name}`, {
        method: body ? "POST" : "GET",
        headers: body ? { "Content-Type": "application/json" } : {},
        body: body && JSON.stringify(body),
      });
    } catch {
      throw new SourceError("The server does not answer. Is `elmo serve` still running?");
    }
    if (!response.ok) {
      const message = await response.json().then((answer) => answer.error.message, () => null);
      throw new SourceError(message ?? `The server answered with an error (${response.status}).`);
    }
    if (response.headers.get("Content-Type")?.startsWith("application/octet-stream"))
      return unpack(await response.arrayBuffer());
    return response.json();
  }
}

function vectors(words, layers) {
  const [count, , dim] = layers.shape;
  return { words, layers, count, dim };
}
