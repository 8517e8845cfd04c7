// Tasks: what the loaded task models say about a text.

import { h, latest, Superseded, choices, announce } from "../dom.js";
import { createFigure } from "../figure.js";
import { renderRecord } from "../task-records.js";

const TITLES = {
  ner: "Named entities", srl: "Semantic roles", coref: "Who is who", qa: "Questions and answers",
  nli: "Does it follow?", sentiment: "Sentiment",
};
const SAMPLES = {
  ner: ["Ada Lovelace was born in London and worked with Charles Babbage on the Analytical Engine. In 1833 she met Mary Somerville of the Royal Society."],
  srl: ["The committee gave the prize to a young painter from Ghent. She thanked them in the evening."],
  coref: ["Emma told her sister that she had bought a horse. It was old, but the girls loved it."],
  qa: ["The bridge was built by Roman engineers in 98 and carries a road across the Danube.", "Who built the bridge?"],
  nli: ["A man plays a guitar on a stage.", "Someone makes music."],
  sentiment: ["The script is clumsy. But the actors are a joy to watch, and the last scene is unforgettable."],
};

export function createView(app) {
  return new TasksView(app);
}

class TasksView {
  #latest = latest();

  constructor(app) {
    this.app = app;
    this.tasks = app.info.tasks;
    this.task = this.tasks[0];
    this.boxes = [];
    this.fields = h("div", { class: "field" });
    this.figure = createFigure({ title: "Prediction", name: () => `task-${this.task?.name}`, json: () => this.json(), drawn: false });
    this.problem = h("p", { class: "error", role: "alert", hidden: true });
    this.choice = h("div", { class: "field" });
    this.result = h("div", { class: "card", hidden: true }, this.figure);
    this.root = h(
      "section",
      { class: "view" },
      h("h1", {}, "Tasks"),
      h("p", { class: "lead" }, "Vectors are for use: a small network on top of them learns to find names, roles, answers. Paste a text."),
      ...(this.tasks.length
        ? [this.choice, this.fields, this.problem, this.result,
          h("p", { class: "honest" }, "A task model is as good as the data it was trained on, and sure of itself also where it is wrong: the percentages are those of the model. Point at a mark to see them.")]
        : [noTasks(app.info.offline)]),
    );
    app.onRedraw(() => this.records && this.draw());
  }

  async open(parameters) {
    if (!this.tasks.length) return this.app.remember("tasks", {});
    const wanted = this.tasks.find(({ name }) => name === parameters.get("task")) ?? this.task;
    this.choice.replaceChildren(
      choices("Task model", this.tasks.map(({ name, task }) => [name, name === task ? TITLES[task] : `${TITLES[task]} (${name})`]), wanted.name, (value) =>
        this.choose(this.tasks.find(({ name }) => name === value))),
    );
    const texts = wanted.arguments.map((_, i) => parameters.get(`text${i + 1}`));
    await this.choose(wanted, texts.every(Boolean) ? texts : null);
  }

  async choose(task, texts = null) {
    const kept = task === this.task && this.boxes.length ? this.boxes.map((box) => box.value) : null;
    this.task = task;
    const values = texts ?? kept ?? SAMPLES[task.task];
    this.boxes = task.arguments.map((_, i) => {
      const box = h("textarea", { class: "sentence-box", rows: task.arguments.length > 1 ? 2 : 3, maxlength: 20000 });
      box.value = values[i] ?? "";
      box.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.ask();
      });
      return box;
    });
    this.fields.replaceChildren(
      ...task.arguments.map((name, i) => h("div", { class: "field" }, h("label", {}, task.arguments.length === 1 ? "Text" : name[0].toUpperCase() + name.slice(1), this.boxes[i]))),
      h("button", { type: "button", class: "main", onclick: () => this.ask() }, "Predict"),
    );
    await this.ask();
  }

  async ask() {
    const texts = this.boxes.map((box) => box.value);
    if (!texts.every((text) => text.trim())) return;
    this.figure.setAttribute("aria-busy", "true");
    try {
      this.records = await this.#latest(this.app.source.predict(this.task.name, texts));
      this.texts = texts;
      this.problem.hidden = true;
      this.result.hidden = false;
      this.draw();
      announce("Prediction ready");
      this.app.remember("tasks", { task: this.task.name, ...Object.fromEntries(texts.map((text, i) => [`text${i + 1}`, text])) });
    } catch (error) {
      if (error instanceof Superseded) return;
      this.problem.textContent = error.message;
      this.problem.hidden = false;
      this.result.hidden = true;
    } finally {
      this.figure.removeAttribute("aria-busy");
    }
  }

  draw() {
    this.figure.rename(TITLES[this.task.task] ?? this.task.name);
    this.figure.place.replaceChildren(...this.records.flatMap((record) => renderRecord(this.task.task, record, this.texts)));
    if (!this.records.length) this.figure.place.replaceChildren(h("p", { class: "empty" }, "Nothing was predicted for this text."));
  }

  json() {
    return { task: this.task.name, texts: this.texts, records: this.records };
  }
}

function noTasks(offline) {
  const command = (text) => h("pre", { tabindex: "0" }, h("code", {}, text));
  return h("div", { class: "card" },
    h("h2", {}, offline ? "Task models need a server" : "No task model is loaded"),
    h("p", {}, offline
      ? "This page runs without a server, and task models run on PyTorch. On a computer of yours, train one, and start the page with it:"
      : "Train one, or take one that you have, and start the server with it:"),
    command("pip install 'elmokit[serve,train]'\nelmo task train ner --train train.conll --dev dev.conll --out ner-model\nelmo serve --task ner=ner-model"),
    h("p", {}, "There are six tasks: ", h("code", {}, "ner"), " (names), ", h("code", {}, "srl"), " (who did what to whom), ", h("code", {}, "coref"), " (which words mean the same), ", h("code", {}, "qa"), " (answers in a text), ", h("code", {}, "nli"), " (does a sentence follow from another) and ", h("code", {}, "sentiment"), ". Several can be loaded at once, each with its own ", h("code", {}, "--task NAME=DIR"), "."));
}
