"use strict";
// What a reader sees and does. It computes nothing: the engine does, in a worker, so that the page never waits for it.

const $ = (id) => document.getElementById(id);
const purpose = document.body.dataset.purpose;
const SHORT = 600; // characters up to which a text is translated as it is typed
const WAIT = 400; // milliseconds after the last key

// Elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const percent = (p) => (p > 0.99 && p < 1 ? "> 99 %" : p < 0.01 ? "< 1 %" : `${Math.round(100 * p)} %`);
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(milliseconds < 10000 ? 1 : 0)} s`;
const counted = (count, one, several) => `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
const say = (text) => ($("status").textContent = text);

const engine = openEngine($("engine").textContent, (problem) => say(`The engine failed: ${problem}`));

// What differs between a translator, a language model and a sentence encoder

const KINDS = {
  translator: {
    kicker: "A translator in one file", source: "Text", result: "Translation", go: "Translate", file: "translation.txt",
    hint: "One sentence or a page; each line is translated for itself. Ctrl + Enter translates.",
    work: "translate", doing: "translating",
  },
  "language model": {
    kicker: "A language model in one file", source: "Beginnings", result: "Texts", go: "Continue", file: "texts.txt",
    hint: "One beginning in each line; an empty page makes up a text of its own. Ctrl + Enter continues.",
    work: "continue", doing: "writing",
  },
  "sentence encoder": {
    kicker: "A sentence encoder in one file", source: "Lines to search in", result: "Nearest lines", go: "Find", file: "nearest.txt",
    hint: "One sentence in each line, in any language that the model has learnt.",
    work: "vectors", doing: "reading",
  },
};
const kind = KINDS[purpose];
const state = { about: null, lines: [], results: [], isRunning: false, vectors: new Map(), timer: 0 };

// Settings

function radio(name, value, text, isChecked) {
  return element("label", {}, element("input", { type: "radio", name, value, checked: isChecked }), text);
}

function numberField(id, text, attributes) {
  return element("label", { for: id }, text, element("input", { id, type: "number", ...attributes }));
}

function buildSettings() {
  const { decoding } = state.about, beam = decoding.beam_size > 1 ? decoding.beam_size : 5;
  const typing = element("label", {}, element("input", { type: "checkbox", id: "typing", checked: true }), "as I type");
  if (purpose === "translator") {
    const search = element("fieldset", {}, element("legend", {}, "Search"),
      radio("beam", 1, "quick (greedy)", decoding.beam_size === 1), radio("beam", beam, `careful (beam ${beam})`, decoding.beam_size > 1));
    $("settings").append(search, typing);
  }
  if (purpose === "language model")
    $("settings").append(
      numberField("temperature", "Temperature", { min: 0.05, max: 5, step: 0.05, value: 1 }),
      numberField("top-p", "Top p", { min: 0.05, max: 1, step: 0.05, value: 0.9 }),
      numberField("seed", "Seed", { min: 0, step: 1, value: 0 }),
    );
}

function settings() {
  if (purpose === "translator") return { beam_size: Number(document.querySelector('input[name="beam"]:checked').value) };
  if (purpose === "sentence encoder") return {};
  const value = (id, least, most) => Math.min(Math.max(Number($(id).value) || least, least), most);
  return { temperature: value("temperature", 0.01, 100), top_p: value("top-p", 0.01, 1), seed: $("seed").value || "0" };
}

// Work

async function run() {
  const lines = $("source").value.replace(/\r\n?/g, "\n").replace(/\n+$/, "").split("\n");
  if (purpose === "sentence encoder") return find(lines.filter((line) => line.trim()));
  Object.assign(state, { lines, results: [] });
  $("result").replaceChildren();
  if (purpose === "translator" && !$("source").value.trim()) return finished("");
  await begun(kind.work, lines, ({ number, result }) => {
    state.results[number] = result;
    $("result").append(lineOf(result, number));
  });
}

/** Has the engine do something for each of some texts, with progress and a stop. */
async function begun(work, texts, onOne) {
  const started = performance.now();
  let done = 0;
  const token = (state.token = {});
  if (state.isRunning) engine.stop();
  running(true, texts.length);
  try {
    await engine.ask({ kind: work, texts, settings: settings() }, (one) => {
      if (state.token !== token) return; // of a text that has changed since
      $("progress").value = ++done;
      if (texts.length > 1) $("facts").textContent = `${done} of ${counted(texts.length, "line", "lines")}`;
      onOne(one);
    });
    if (state.token === token) finished(`${counted(texts.length, "line", "lines")} in ${seconds(performance.now() - started)}`);
  } catch (error) {
    if (state.token !== token) return;
    finished(error.isStop ? `Stopped after ${counted(done, "line", "lines")}.` : `That failed: ${error.message}`);
  }
}

function running(is, count = 0) {
  state.isRunning = is;
  $("stop").hidden = !is;
  $("progress").hidden = !is || count < 2;
  Object.assign($("progress"), { max: Math.max(count, 1), value: 0 });
  if (is) say(`${kind.doing} ..`);
}

function finished(text) {
  running(false);
  $("facts").textContent = text;
  say(text ? `Done: ${text}` : "Ready.");
  const isEmpty = !outputText();
  $("copy").disabled = $("save").disabled = isEmpty;
}

function outputText() {
  return state.results.map((one) => (one ? one.text : "")).join("\n");
}

// Results of translators and language models

function lineOf(result, number) {
  const text = element("p", { dir: "auto" });
  const beginning = purpose === "language model" ? state.lines[number].trim() : "";
  const given = result.text.startsWith(beginning) ? beginning : "";
  text.append(given ? element("span", { class: "given" }, given) : "", result.text.slice(given.length));
  const remarks = remarksOf(result).map((one) => element("p", { class: "remark" }, one));
  const parts = result.parts ?? (result.pieces?.length ? [result] : []);
  if (!parts.length) return element("div", {}, element("div", { class: "line" }, text), ...remarks);
  const detail = element("div", { class: "detail", id: `detail-${number}`, hidden: true });
  const open = element("button", {
    type: "button", class: "quiet open", "aria-expanded": "false", "aria-controls": detail.id, "aria-label": `Pieces of line ${number + 1}`,
    onclick: () => {
      detail.hidden = !detail.hidden;
      open.setAttribute("aria-expanded", String(!detail.hidden));
      if (!detail.childElementCount) detail.append(...parts.flatMap((part) => detailsOf(part, result)));
    },
  }, "pieces");
  return element("div", {}, element("div", { class: "line" }, text, open), ...remarks, detail);
}

function remarksOf(result) {
  const remarks = [];
  if (result.problem) remarks.push(`Not continued: ${result.problem}.`);
  if (result.lost?.length) remarks.push(`Lost of the source: ${result.lost.join(" ")}`);
  if (result.unknown?.length) remarks.push(`Not in the vocabulary: ${result.unknown.join(" ")}`);
  if (result.looped && !result.repaired) remarks.push("It repeats itself.");
  if (result.cut) remarks.push("A sentence was longer than the model reads, and was translated in parts.");
  return remarks;
}

function detailsOf(part, result) {
  const pieces = element("ol", { class: "pieces", "aria-label": "Pieces and their probabilities" });
  part.pieces.forEach((piece, i) => {
    const p = part.probabilities[i], isGiven = i < (result.given ?? 0);
    const style = isGiven ? null : `background: rgb(var(--doubt) / ${(0.6 * (1 - p)).toFixed(2)})`;
    pieces.append(element("li", { dir: "auto", style }, piece, element("small", {}, isGiven ? "given" : percent(p))));
  });
  const made = [pieces];
  if (result.confidence !== undefined) made.push(element("p", {}, `Confidence ${percent(result.confidence)}${result.repaired ? "; found by a second search" : ""}`));
  if (part.others?.length)
    made.push(element("p", {}, "Others that the search found:"), element("ul", {}, ...part.others.filter((one) => one.text).map((one) => element("li", { dir: "auto" }, one.text))));
  if (part.source) {
    const show = element("button", { type: "button", class: "quiet", onclick: () => showAttention(part, show) }, "Show attention");
    made.push(show);
  }
  return made;
}

async function showAttention(part, button) {
  button.disabled = true;
  const { weights } = await engine.ask({ kind: "attention", source: part.sourceIds, ids: part.ids });
  const head = element("tr", {}, element("td", {}), ...part.source.map((piece) => element("th", { scope: "col", dir: "auto" }, piece)));
  const rows = weights.map((row, t) =>
    element("tr", {}, element("th", { scope: "row", dir: "auto" }, part.pieces[t]),
      ...row.map((share, s) => element("td", {
        class: share > 0.6 ? "much" : null,
        style: `background: rgb(var(--share) / ${Math.min(share, 1).toFixed(3)})`, title: `${part.pieces[t]} looks at ${part.source[s]}: ${percent(share)}`,
      }, share >= 0.1 ? String(Math.round(100 * share)) : ""))));
  const caption = element("caption", { class: "visually-hidden" }, "What each piece of the output looked at, in percent");
  const label = element("p", { class: "hint" }, "Rows are pieces of the output, columns pieces of the text: the mean over all layers and heads, in percent.");
  button.replaceWith(label, element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Attention" },
    element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows))));
}

// Results of sentence encoders

async function find(lines) {
  const query = $("query").value, unread = [...new Set([query, ...lines])].filter((line) => !state.vectors.has(line));
  await begun(kind.work, unread, ({ number, result }) => state.vectors.set(unread[number], result));
  if (![query, ...lines].every((line) => state.vectors.has(line))) return;
  const similarity = (a, b) => a.reduce((sum, one, i) => sum + one * b[i], 0);
  const asked = state.vectors.get(query);
  const ranked = lines.map((text) => ({ text, share: similarity(asked, state.vectors.get(text)) })).sort((a, b) => b.share - a.share);
  state.results = ranked.map(({ text, share }) => ({ text: `${share.toFixed(3)}\t${text}` }));
  const items = ranked.slice(0, 200).map(({ text, share }) =>
    element("li", {}, element("span", { class: "share", style: `background: rgb(var(--share) / ${(0.4 * Math.max(share, 0)).toFixed(2)})` }, share.toFixed(3)),
      element("span", { dir: "auto" }, text)));
  $("result").replaceChildren(element("ol", { class: "found" }, ...items));
  finished(`${counted(ranked.length, "line", "lines")}, the nearest first`);
}

// Copying and saving

async function copy() {
  try {
    await navigator.clipboard.writeText(outputText());
  } catch {
    const area = element("textarea", { class: "visually-hidden" });
    area.value = outputText();
    document.body.append(area);
    area.select();
    document.execCommand("copy"); // where a page from a file may not use the clipboard
    area.remove();
  }
  say("Copied.");
}

function save() {
  const link = element("a", { href: URL.createObjectURL(new Blob([outputText() + "\n"], { type: "text/plain" })), download: kind.file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  say(`Saved as ${kind.file}.`);
}

// Light and dark

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
}

// The beginning

function wire() {
  $("work").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  $("source").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("work").requestSubmit($("go"));
  });
  $("source").addEventListener("input", () => {
    clearTimeout(state.timer);
    if ($("typing")?.checked && $("source").value.length <= SHORT) state.timer = setTimeout(run, WAIT);
  });
  $("settings").addEventListener("change", () => purpose === "translator" && $("source").value.trim() && $("source").value.length <= SHORT && run());
  $("clear").addEventListener("click", () => {
    $("source").value = "";
    $("result").replaceChildren();
    state.results = [];
    finished("");
    $("source").focus();
  });
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    if (file) $("source").value = await file.text();
    $("file").value = "";
  });
  $("stop").addEventListener("click", () => engine.stop());
  $("copy").addEventListener("click", copy);
  $("save").addEventListener("click", save);
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

function describe({ config, weights, tfm_version: version }) {
  const layers = [[config.num_encoder_layers, "encoder"], [config.num_decoder_layers, "decoder"]].filter(([count]) => count);
  const stacks = layers.map(([count, name]) => `${counted(count, `${name} layer`, `${name} layers`)}`).join(", ");
  return `A Transformer with ${stacks}, ${config.d_model} wide; weights in ${weights}; tfm ${version}.`;
}

async function begin() {
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  $("kicker").textContent = kind.kicker;
  $("source-label").textContent = kind.source;
  $("result-label").textContent = kind.result;
  $("go").textContent = kind.go;
  $("hint").textContent = kind.hint;
  $("query-field").hidden = purpose !== "sentence encoder";
  const model = $("model").textContent;
  $("model").remove(); // the worker has it
  try {
    state.about = (await engine.ask({ kind: "open", model })).about;
  } catch (error) {
    say(`The model could not be read: ${error.message}. A browser of 2023 or later is needed.`);
    return;
  }
  buildSettings();
  wire();
  $("about").textContent = describe(state.about);
  $("go").disabled = false;
  say("Ready.");
  if ($("source").value.trim() && purpose === "translator") run();
}

begin();
