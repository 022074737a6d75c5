"use strict";
// Draws what is in `data` and `arrays`. It computes nothing of the model but p = exp(logit / T - normaliser).

const data = JSON.parse(document.getElementById("data").textContent);
const state = { layer: 0, head: 0, token: 0, step: 0, temperature: data.temperatures.indexOf(1), topP: 1, snapshot: 0 };
const decodes = data.written.length > 0;
const joint = Boolean(data.axes.seq);
let prefix = joint ? data.axes.seq.length - data.axes.tgt.length : 0;
let arrays = unpacked();

/** The arrays by name: { shape, values }. */
function unpacked() {
  const bytes = Uint8Array.from(atob(document.getElementById("numbers").textContent.trim()), (c) => c.charCodeAt(0));
  const numbers = new Float32Array(bytes.buffer);
  const sliced = ({ shape, offset }) => ({ shape, values: numbers.subarray(offset, offset + shape.reduce((a, b) => a * b, 1)) });
  return Object.fromEntries(Object.entries(data.arrays).map(([name, at]) => [name, sliced(at)]));
}

// Numbers

const array = (name) => arrays[name] ?? null;

/** The array of a view for the chosen layer (the stack's last one, if it has fewer) and, where it has heads, the chosen head. */
function chosen(view) {
  const found = array(view.array.replace("{layer}", layerOf(view)));
  if (!found || !view.by_head) return found;
  const [, rows, columns] = found.shape;
  const start = state.head * rows * columns;
  return { shape: [rows, columns], values: found.values.subarray(start, start + rows * columns) };
}

const row = (found, i) => found.values.subarray(i * found.shape[1], (i + 1) * found.shape[1]);
const position = (axis) => (axis === "tgt" ? state.step : state.token);

function number(x, digits = 3) {
  if (x === -Infinity) return "−∞";
  const text = Math.abs(x) >= 1000 ? x.toPrecision(4) : x.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

const percent = (p) => (p > 0.9995 && p < 1 ? "> 99.9 %" : p < 0.001 ? "< 0.1 %" : `${(100 * p).toFixed(1)} %`);
const spoken = (piece) => piece.replaceAll("▁", " ").trim() || piece;

// Elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Colours

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim().split(" ").map(Number);
}

let palette = {};
function readPalette() {
  palette = { paper: colour("--paper"), positive: colour("--positive"), negative: colour("--negative"), share: colour("--share") };
}

function mixed(to, amount) {
  const part = Math.max(0, Math.min(1, amount));
  return palette.paper.map((c, i) => Math.round(c + (to[i] - c) * part));
}

const css = (rgb) => `rgb(${rgb.join(" ")})`;
const signed = (x, scale) => mixed(x >= 0 ? palette.positive : palette.negative, scale ? Math.abs(x) / scale : 0);
const share = (p) => mixed(palette.share, p);
/** Black or white, whichever has the larger contrast (WCAG: relative luminance). */
function readable(rgb) {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? "#fff" : "#000";
}

function largest(values) {
  let most = 0;
  for (const x of values) if (Number.isFinite(x) && Math.abs(x) > most) most = Math.abs(x);
  return most;
}

// Saving a picture: colours of the page are written into it, so that it looks the same elsewhere.

const KEPT_STYLES = ["fill", "stroke", "stroke-width", "stroke-opacity", "font-family", "font-size", "font-weight", "opacity"];

function saveButton(picture, name) {
  return element("button", { type: "button", class: "quiet", onclick: () => save(picture(), name) }, "Save as SVG");
}

function save(picture, name) {
  const copy = picture.cloneNode(true);
  const originals = picture.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(originals[i]);
    for (const property of KEPT_STYLES) node.style.setProperty(property, style.getPropertyValue(property));
  });
  const box = picture.viewBox.baseVal;
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.prepend(svg("rect", { width: box.width, height: box.height, fill: css(palette.paper) }));
  const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  const link = element("a", { href: URL.createObjectURL(blob), download: `${name}.svg` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Views

function strip(values, scale, label, perLine = 64) {
  const columns = Math.min(values.length, perLine);
  const lines = Math.ceil(values.length / columns);
  const canvas = element("canvas", { width: columns, height: lines, role: "img", "aria-label": label });
  canvas.style.height = `${lines * 16}px`;
  paint(canvas, values, columns, lines, (x) => signed(x, scale));
  return canvas;
}

function paint(canvas, values, columns, lines, colourOf) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, lines);
  for (let i = 0; i < columns * lines; i++) {
    const rgb = i < values.length ? colourOf(values[i]) : palette.paper;
    image.data.set([...rgb, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

function readouts(canvas, values, columns) {
  const output = element("p", { class: "readout" });
  const few = Array.from(values.subarray(0, 8), (x) => number(x)).join(", ");
  const length = Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
  const rest = `[${few}${values.length > 8 ? ", .." : ""}] ${values.length} numbers, length ${number(length, 2)}`;
  output.textContent = rest;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const y = Math.floor(((event.clientY - box.top) / box.height) * Math.ceil(values.length / columns));
    const at = y * columns + x;
    if (at >= 0 && at < values.length) output.textContent = `column ${at + 1}: ${number(values[at], 5)}`;
  });
  canvas.addEventListener("pointerleave", () => (output.textContent = rest));
  const every = element("details", { class: "numbers" }, element("summary", {}, "all numbers"));
  every.addEventListener("toggle", () => {
    if (every.open && every.children.length === 1)
      every.append(element("div", { tabindex: "0" }, Array.from(values, (x) => number(x, 5)).join("  ")));
  });
  return [output, every];
}

const piece = (axis, i) => data.axes[axis][i].text;
/** A piece in a sentence, marked as one. */
const pieceName = (text) => element("code", { class: "is-piece" }, text);
/** The name of a row: where the target looks at the source, what the step writes says more than what it has read. */
const rowName = (rows, columns, i) => (rows === "tgt" && columns === "src" ? data.written[i].text : piece(rows, i));
const label = (view, ...extra) => element("p", { class: "label" }, element("span", {}, element("b", {}, view.label), " ", ...extra));

const scroller = (name, ...children) => element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, ...children);

/** Which piece, layer and head a view shows, in words. */
function ofPiece(view) {
  const at = position(view.rows), name = pieceName(piece(view.rows, at));
  const of = view.rows === "tgt" ? [`at step ${at + 1}, which has read `, name, " and writes ", pieceName(data.written[at].text)] : ["for ", name];
  const layer = view.array.includes("{layer}") ? `, layer ${layerOf(view) + 1}` : "";
  return [...of, `${layer}${view.by_head ? `, head ${state.head + 1}` : ""}`];
}

/** The chosen layer, or the last one of a stack that has fewer. */
function layerOf(view) {
  return Math.min(state.layer, (data.layers[view.array.startsWith("encoder") ? "encoder" : "decoder"] || 1) - 1);
}

const views = {
  pieces() {
    const tables = Object.entries(data.axes).map(([axis, pieces]) => {
      const names = { src: "source", tgt: "what the decoder reads", seq: "the one sequence" };
      if (joint && axis === "tgt") return "";
      const head = element("tr", {}, element("th", { scope: "row" }, names[axis]), ...pieces.map((p) => element("td", { class: "mono" }, p.text)));
      const ids = element("tr", {}, element("th", { scope: "row" }, "number"), ...pieces.map((p) => element("td", { class: "mono" }, String(p.id))));
      return scroller(names[axis], element("table", { class: "list" }, head, ids));
    });
    return tables;
  },

  vector(view) {
    const found = chosen(view);
    const values = row(found, found.shape[0] === 1 ? 0 : position(view.rows));
    const scale = largest(found.values);
    const columns = Math.min(values.length, 64);
    const canvas = strip(values, scale, `${view.label}: ${values.length} numbers from ${number(Math.min(...values))} to ${number(Math.max(...values))}`);
    return [label(view, ...(found.shape[0] === 1 ? [] : ofPiece(view))), canvas, ...readouts(canvas, values, columns)];
  },

  heat(view) {
    const found = chosen(view);
    const [lines, columns] = found.shape;
    const canvas = element("canvas", { width: columns, height: lines, role: "img", "aria-label": `${view.label}: ${lines} rows, ${columns} columns` });
    canvas.style.height = `${Math.max(lines * 4, 40)}px`;
    const scale = largest(found.values);
    paint(canvas, found.values, columns, lines, (x) => signed(x, scale));
    const note = `Rows are positions 0 to ${lines - 1}, from the top; this text has the first ${data.axes[view.rows].length}. Columns are 1 to ${columns}, from the left.`;
    return [label(view), canvas, element("p", { class: "readout" }, note)];
  },

  statistics(view) {
    const name = view.array.replace("{layer}", layerOf(view));
    const at = position(view.rows);
    const [mean, variance] = ["mean", "variance"].map((part) => array(`${name}.${part}`).values[at]);
    return [
      element("p", { class: "statistics" }, element("span", {}, `mean ${number(mean, 5)}`), element("span", {}, `variance ${number(variance, 5)}`), element("span", {}, `eps ${data.config.norm_eps}`)),
    ];
  },

  matrix(view) {
    const found = chosen(view);
    const [rows, columns] = found.shape;
    const isShare = view.array.endsWith("weights");
    const scale = largest(found.values);
    const heads = Array.from({ length: columns }, (_, j) =>
      element("th", { scope: "col", class: view.columns !== view.rows && j === position(view.columns) ? "is-column" : "" },
        element("button", { type: "button", id: `${view.id}-column-${j}`, "aria-pressed": String(j === position(view.columns)), onclick: () => select(view.columns, j) }, piece(view.columns, j))));
    if (isShare) heads.push(element("th", { scope: "col" }, "sum"));
    const body = Array.from({ length: rows }, (_, i) => {
      const values = row(found, i);
      const cells = Array.from(values, (x) => {
        const rgb = isShare ? share(x) : x === -Infinity ? palette.paper : signed(x, scale);
        const cell = element("td", {}, number(x, 2));
        cell.style.background = css(rgb);
        cell.style.color = x === -Infinity ? "var(--soft)" : readable(rgb);
        return cell;
      });
      if (isShare) cells.push(element("td", { class: "sum" }, number(values.reduce((a, b) => a + b, 0), 2)));
      const head = element("th", { scope: "row" }, element("button", { type: "button", id: `${view.id}-row-${i}`, "aria-pressed": String(i === position(view.rows)), onclick: () => select(view.rows, i) }, rowName(view.rows, view.columns, i)));
      return element("tr", { class: i === position(view.rows) ? "is-row" : "" }, head, ...cells);
    });
    const table = element("table", { class: "matrix" },
      element("caption", { class: "visually-hidden" }, `${view.label}, head ${state.head + 1}`),
      element("thead", {}, element("tr", {}, element("td", {}), ...heads)), element("tbody", {}, ...body));
    return [label(view, `layer ${layerOf(view) + 1}, head ${state.head + 1}`), scroller(view.label, table)];
  },

  weighted(view) {
    const values = row(chosen(view), position(view.rows));
    const items = Array.from(values, (p, j) => bar(piece(view.columns, j), p, number(p)));
    return [label(view, ...ofPiece(view)), element("div", { class: "bars" }, ...items.flat())];
  },

  lines(view) {
    const picture = linesPicture(view);
    const bare = label(view, `layer ${layerOf(view) + 1}, head ${state.head + 1}`);
    bare.append(saveButton(() => picture, "attention-lines"));
    return [bare, scroller("the two sentences", picture)];
  },

  grid(view) {
    return [gridOf(view, (layer) => array(view.array.replace("{layer}", layer)), data.layers[view.array.startsWith("encoder") ? "encoder" : "decoder"])];
  },

  layers(view) {
    const stack = view.array.startsWith("encoder") ? "encoder" : "decoder";
    const all = Array.from({ length: data.layers[stack] }, (_, l) => row(array(view.array.replace("{layer}", l)), position(view.rows)));
    const scale = Math.max(...all.map(largest));
    return [label(view, ...ofPiece(view)), ...all.flatMap((values, l) => [element("p", { class: "readout" }, `after layer ${l + 1}`), strip(values, scale, `after layer ${l + 1}`, 128)])];
  },

  candidates(view) {
    const step = data.steps[state.step];
    const written = data.written[state.step].id;
    const asLogits = view.label === "logits";
    const T = data.temperatures[state.temperature];
    const probabilities = step.logits.map((l) => Math.exp(l / T - step.log_normalisers[state.temperature]));
    const low = Math.min(...step.logits), high = Math.max(...step.logits);
    const left = !asLogits && data.live && state.topP < 1 ? kept() : null, shares = new Map(left?.shares);
    const items = step.candidates.map((c, i) => {
      const part = asLogits ? (step.logits[i] - low) / (high - low || 1) : left ? shares.get(c.id) ?? 0 : probabilities[i];
      const text = asLogits ? number(step.logits[i], 2) : left && !shares.has(c.id) ? "cut" : percent(part);
      return bar(c.text, part, text, c.id === written);
    });
    const about = element("p", { class: "label" }, element("span", {}, `step ${state.step + 1}: `, pieceName(data.written[state.step].text), state.step < data.prefix ? " was given" : " was written"));
    const note = asLogits ? `The ${step.candidates.length} likeliest of ${data.vocabulary.toLocaleString("en")} pieces at step ${state.step + 1}.` : drawnFrom(T, probabilities, left);
    return [about, element("div", { class: "bars" }, ...items.flat()), element("p", { class: "facts" }, note)];
  },

  early() {
    const rows = data.steps[state.step].early.map((best, l) =>
      element("tr", {}, element("th", { scope: "row" }, `layer ${l + 1}`), ...best.map(([text, p]) => {
        const cell = element("td", {}, `${text} ${percent(p)}`);
        cell.style.background = css(share(p)); cell.style.color = readable(share(p));
        return cell;
      })));
    return [element("p", { class: "label" }, element("span", {}, `step ${state.step + 1}`)), scroller("what each layer would have said", element("table", { class: "list" }, ...rows))];
  },

  choice() {
    const picture = tree();
    const tops = data.beam.hypotheses.map((h, i) => found(`beam ${i + 1}`, h));
    const rows = [found("greedy", data.greedy), ...tops, ...data.samples.map((s, i) => found(`sample ${i + 1}`, s))];
    const hint = element("p", { class: "facts" }, "Darker means less probable. The small number is the rank of a piece among all that might have come: greedy search takes the first and leaves the others; a sample may take any.");
    const head = element("tr", {}, ...["search", "log P", "score", "pieces"].map((t) => element("th", { scope: "col" }, t)));
    const bare = element("p", { class: "label" }, element("span", {}, element("b", {}, "the beam as a tree"), ` size ${data.beam.size}; pale was cut, green ended, orange is the best`), saveButton(() => picture, "beam"));
    return [coloured(data.written.slice(0, -1).map((p) => p.text), data.steps.map((s) => s.probability)), scroller("what the searches found", element("table", { class: "list" }, head, ...rows)), hint, bare, scroller("the beam as a tree", picture)];
  },

  heads_off() {
    if (!data.heads_off) return [element("p", { class: "facts" }, "computing ..")];
    const whole = data.output.log_prob;
    const sorted = [...data.heads_off].sort((a, b) => a.log_prob - b.log_prob);
    const head = element("tr", {}, ...["without", "change of log P", "greedy search then writes"].map((t) => element("th", { scope: "col" }, t)));
    const rows = sorted.map((one) => {
      const [stack, , layer, kind] = one.module.split(".");
      const name = `${stack} layer ${Number(layer) + 1}, ${kind === "cross_attn" ? "cross" : "self"}, head ${one.head + 1}`;
      const text = one.text === data.greedy.text ? "the same" : one.text || "nothing";
      const isChosen = Number(layer) === state.layer && one.head === state.head;
      const button = element("button", { type: "button", class: "chip", id: `off-${one.module}-${one.head}`, "aria-pressed": String(isChosen), onclick: () => set({ layer: Number(layer), head: one.head }) }, name);
      return element("tr", {}, element("td", {}, button), element("td", { class: "number" }, number(one.log_prob - whole, 3)), element("td", { class: "long" }, text));
    });
    return [scroller("without each head", element("table", { class: "list" }, head, ...rows))];
  },

  checkpoints(view) {
    if (!data.snapshots.length) return [element("p", { class: "facts" }, "The checkpoints are shown for the sentence that this page was made of.")];
    const shown = element("b"), below = element("div");
    const show = () => {
      const { step, text, probabilities, modules } = data.snapshots[state.snapshot];
      shown.textContent = `step ${step.toLocaleString("en")}`;
      slider.setAttribute("aria-valuetext", shown.textContent);
      below.replaceChildren(
        element("p", {}, "Greedy search writes: ", element("b", {}, text || "nothing")),
        element("p", { class: "facts" }, "How probable the final output was then; darker means less probable:"),
        coloured(data.written.slice(0, -1).map((p) => p.text), probabilities),
        gridOf(view, (layer) => array(`checkpoints.${step}.${modules[layer]}`), modules.length),
      );
    };
    const slider = element("input", { type: "range", id: "snapshot", min: 0, max: data.snapshots.length - 1, value: state.snapshot, "aria-label": "checkpoint",
      oninput: () => { state.snapshot = Number(slider.value); show(); } });
    show();
    return [element("p", { class: "pair" }, slider, shown), below];
  },
};

/** What a sample is drawn from. */
function drawnFrom(T, probabilities, left) {
  if (left) return `Temperature ${T}, top-p ${state.topP}: ${left.count.toLocaleString("en")} of ${data.vocabulary.toLocaleString("en")} pieces remain to be drawn from. Their shares add up to 1 again.`;
  const all = probabilities.reduce((a, b) => a + b, 0), falling = [...probabilities].sort((a, b) => b - a);
  let sum = 0, count = 0;
  while (count < falling.length && sum < 0.9) sum += falling[count++];
  const most = sum < 0.9 ? `more than ${count}` : count;
  return `Temperature ${T}. These pieces have ${percent(Math.min(all, 1))} together. Sampling with --top-p 0.9 would draw from ${most} of them, greedy search takes the first.`;
}

function found(name, output) {
  return element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "number" }, number(output.log_prob, 2)), element("td", { class: "number" }, number(output.score, 2)), element("td", { class: "long" }, ranked(output)));
}

/** The pieces of an output, each on a ground that says how probable it was, with its rank. */
function ranked(output) {
  const spans = output.pieces.map((text, i) => {
    const rgb = mixed(palette.negative, 1 - output.probabilities[i]);
    const span = element("span", { class: "piece", title: `${percent(output.probabilities[i])}, rank ${output.ranks[i]}` }, text.replaceAll("▁", i ? " " : ""), element("sub", {}, String(output.ranks[i])));
    span.style.background = css(rgb); span.style.color = readable(rgb);
    return span;
  });
  return element("span", { class: "ranked" }, ...spans);
}

function bar(name, part, text, isWritten = false, isLow = false) {
  const fill = element("i", { class: isLow ? "low" : null });
  fill.style.width = `${100 * Math.max(0, Math.min(1, part))}%`;
  return [element("span", { class: `name${isWritten ? " is-written" : ""}` }, name), element("span", { class: "bar", "aria-hidden": "true" }, fill), element("span", { class: `number${isWritten ? " is-written" : ""}` }, text)];
}

/** Pieces on a ground that says how probable each was. */
function coloured(pieces, probabilities) {
  const spans = pieces.map((text, i) => {
    const rgb = mixed(palette.negative, 1 - probabilities[i]);
    const span = element("span", { class: "piece", title: percent(probabilities[i]) }, text.replaceAll("▁", i ? " " : ""));
    span.style.background = css(rgb); span.style.color = readable(rgb);
    return span;
  });
  const words = pieces.map((text, i) => `${spoken(text)} ${percent(probabilities[i])}`).join(", ");
  return element("p", { class: "written" }, element("span", { "aria-hidden": "true" }, ...spans), element("span", { class: "visually-hidden" }, words));
}

function heatPicture(map, rows, columns, names) {
  const [H, T, S] = map.shape;
  const cell = names ? 26 : 8, left = names ? 120 : 0, top = names ? 110 : 0, right = names ? 60 : 0;
  const picture = svg("svg", { viewBox: `0 0 ${left + S * cell + right} ${top + T * cell}` });
  const values = map.values.subarray(map.head * T * S, (map.head + 1) * T * S);
  for (let t = 0; t < T; t++)
    for (let s = 0; s < S; s++) {
      const square = svg("rect", { x: left + s * cell, y: top + t * cell, width: cell, height: cell, fill: css(share(values[t * S + s])) });
      if (names) square.append(svg("title", {}, `${spoken(rowName(rows, columns, t))} looks at ${spoken(piece(columns, s))}: ${number(values[t * S + s])}`));
      picture.append(square);
    }
  if (names) {
    for (let t = 0; t < T; t++) picture.append(svg("text", { x: left - 8, y: top + t * cell + 17, "text-anchor": "end", "font-size": 13 }, rowName(rows, columns, t)));
    for (let s = 0; s < S; s++) picture.append(svg("text", { x: 0, y: 0, "font-size": 13, transform: `translate(${left + s * cell + 17} ${top - 8}) rotate(-60)` }, piece(columns, s)));
    picture.setAttribute("width", left + S * cell + right);
  } else picture.append(svg("rect", { width: S * cell, height: T * cell, fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 }));
  return picture;
}

function gridOf(view, mapOf, layers) {
  const buttons = [];
  for (let layer = 0; layer < layers; layer++) {
    const map = mapOf(layer);
    for (let head = 0; head < map.shape[0]; head++) {
      const name = `layer ${layer + 1}, head ${head + 1}`;
      const isChosen = layer === Math.min(state.layer, layers - 1) && head === state.head;
      buttons.push(element("button", { type: "button", "aria-pressed": String(isChosen), "aria-label": `${name}: enlarge`,
        id: `${view.id}-map-${layer}-${head}`, onclick: () => { set({ layer, head }); enlarge(view, { ...map, head }, name, `${view.id}-map-${layer}-${head}`); } }, heatPicture({ ...map, head }, view.rows, view.columns, false), name));
    }
  }
  const grid = element("div", { class: "heads" }, ...buttons);
  grid.style.gridTemplateColumns = `repeat(${data.heads}, minmax(0, 9rem))`;
  return grid;
}

function enlarge(view, map, name, opener) {
  const dialog = document.getElementById("large");
  const picture = heatPicture(map, view.rows, view.columns, true);
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `attention, ${name}`);
  dialog.onclose = () => document.getElementById(opener)?.focus();
  document.getElementById("large-title").textContent = `Attention, ${name}`;
  document.getElementById("large-body").replaceChildren(scroller("the map", picture), saveButton(() => picture, `attention-${name.replaceAll(/[ ,]+/g, "-")}`));
  dialog.showModal();
}

function linesPicture(view) {
  const map = chosen(view);
  const [T, S] = map.shape;
  const gap = 26, height = Math.max(T, S) * gap + 10, width = 520;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": `lines from each step to the source, head ${state.head + 1}` });
  const y = (i, count) => (height - count * gap) / 2 + i * gap + 17;
  for (let t = 0; t < T; t++)
    for (let s = 0; s < S; s++) {
      const p = map.values[t * S + s];
      if (p < 0.02) continue;
      const isChosen = t === state.step;
      picture.append(svg("line", { x1: 190, y1: y(s, S) - 5, x2: 330, y2: y(t, T) - 5, stroke: isChosen ? "var(--mark)" : css(palette.share), "stroke-width": 1 + 5 * p, "stroke-opacity": isChosen ? Math.max(p, 0.15) : 0.6 * p }));
    }
  for (let s = 0; s < S; s++) picture.append(pressable(svg("text", { x: 182, y: y(s, S), "text-anchor": "end", "font-size": 14, "font-weight": s === state.token ? 700 : 400 }, piece(view.columns, s)), () => select(view.columns, s)));
  for (let t = 0; t < T; t++) picture.append(pressable(svg("text", { x: 338, y: y(t, T), "font-size": 14, "font-weight": t === state.step ? 700 : 400 }, data.written[t].text), () => set({ step: t })));
  return picture;
}

function pressable(node, action) {
  node.style.cursor = "pointer";
  node.addEventListener("click", action);
  return node;
}

/** All that beam search looked at: a column for each step. */
function tree() {
  const all = data.beam.extensions;
  const best = bestPath(all);
  const columns = [];
  all.forEach((one, i) => (columns[one.position] ??= []).push(i));
  const place = new Map();
  columns.forEach((column, x) => [...column].sort((a, b) => all[b].total - all[a].total).forEach((i, y) => place.set(i, [x * 128 + 70, y * 30 + 22])));
  const height = Math.max(...columns.map((c) => c.length)) * 30 + 20, width = columns.length * 128 + 70;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `the beam as a tree: ${all.length} beginnings in ${columns.length} steps; the table above has the results` });
  const nodes = svg("g");
  picture.append(svg("text", { x: 8, y: 26, "font-size": 12 }, "<s>"));
  all.forEach((one, i) => {
    const [x, y] = place.get(i), [px, py] = one.parent === null ? [-62, 22] : place.get(one.parent);
    const fate = best.has(i) ? "best" : one.fate;
    picture.append(svg("path", { class: `edge ${fate}`, d: `M ${px + 98} ${py} C ${px + 115} ${py}, ${x - 18} ${y}, ${x} ${y}` }));
    const node = svg("g", { class: one.fate, opacity: one.fate === "cut" ? 0.55 : 1 },
      svg("rect", { class: `node ${fate}`, x, y: y - 11, width: 98, height: 22, rx: 5 }),
      svg("text", { x: x + 6, y: y + 4, "font-size": 12 }, short(one.piece)),
      svg("text", { class: "soft", x: x + 93, y: y + 4, "font-size": 10, "text-anchor": "end" }, number(one.total, 2)),
      svg("title", {}, `${spoken(one.piece)}: ${percent(Math.exp(one.log_prob))} here, log-probability ${number(one.total)} so far; ${one.fate}`));
    nodes.append(node);
  });
  picture.append(nodes);
  return picture;
}

const short = (text) => (text.length > 7 ? `${text.slice(0, 6)}…` : text);

function bestPath(all) {
  const wanted = data.beam.hypotheses[0].pieces.slice(0, -1); // without </s>, which ends it
  for (let i = 0; i < all.length; i++) {
    if (all[i].position !== wanted.length) continue;
    const path = [i];
    while (all[path[0]].parent !== null) path.unshift(all[path[0]].parent);
    if (wanted.every((text, p) => all[path[p]].piece === text) && all[i].fate === "ended") return new Set(path);
  }
  return new Set();
}

// What is chosen

function select(axis, i) {
  if (axis === "tgt") set({ step: i });
  else if (axis === "seq") set(i >= prefix ? { token: i, step: i - prefix } : { token: i });
  else set({ token: i });
}

function set(change) {
  if ("step" in change && joint && !("token" in change)) change.token = prefix + change.step;
  Object.assign(state, change);
  const focused = document.activeElement?.id;
  controls();
  draw();
  if (focused) document.getElementById(focused)?.focus();
  document.getElementById("status").textContent = spokenState();
}

function spokenState() {
  const axis = joint ? "seq" : "src";
  const step = decodes ? `, step ${state.step + 1} writes ${spoken(data.written[state.step].text)}` : "";
  return `layer ${state.layer + 1}, head ${state.head + 1}, piece ${spoken(piece(axis, state.token))}${step}`;
}

/** The same in a line of a small window. */
function shortState() {
  const step = decodes ? ` · step ${state.step + 1} ${data.written[state.step].text}` : "";
  return `layer ${state.layer + 1} · head ${state.head + 1} · ${piece(joint ? "seq" : "src", state.token)}${step}`;
}

function chips(name, items, current, choose) {
  const made = items.map((item, i) => {
    const chip = element("button", { type: "button", class: "chip", id: `${name}-${i}`, tabindex: i === current ? "0" : "-1", "aria-pressed": String(i === current), "aria-label": `${name} ${item.spoken ?? item.text}`, onclick: () => choose(i) }, item.text);
    if (item.rgb) { chip.style.background = i === current ? "" : css(item.rgb); chip.style.color = readable(item.rgb); }
    return chip;
  });
  const group = element("div", { class: "chips", role: "group", "aria-label": name }, ...made);
  group.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(items.length - 1, made.indexOf(document.activeElement) + move));
    choose(next);
    document.getElementById(`${name}-${next}`)?.focus();
  });
  return group;
}

/** The slider of top-p; 1 cuts nothing. */
function topP() {
  const shown = element("span", { class: "mono" }, state.topP.toFixed(2));
  const slider = element("input", { id: "top-p", type: "range", min: 0.05, max: 1, step: 0.05, value: state.topP,
    oninput: () => { state.topP = Number(slider.value); shown.textContent = state.topP.toFixed(2); draw((v) => v.kind === "candidates"); } });
  return element("label", {}, "Top-p", slider, shown);
}

function controls() {
  const scrolled = [...document.querySelectorAll(".controls .chips")].map((one) => one.scrollLeft);
  const count = Math.max(data.layers.encoder, data.layers.decoder);
  const numbered = (n) => Array.from({ length: n }, (_, i) => ({ text: String(i + 1) }));
  const box = document.getElementById("controls");
  const named = (name, ...children) => element("div", { class: "group" }, element("span", { class: "name" }, name), ...children);
  const pair = element("div", { class: "pair" },
    element("span", { class: "labelled" }, "Layer", chips("layer", numbered(count), state.layer, (layer) => set({ layer }))),
    element("span", { class: "labelled" }, "Head", chips("head", numbered(data.heads), state.head, (head) => set({ head }))));
  if (decodes) {
    const slider = element("input", { id: "temperature", type: "range", min: 0, max: data.temperatures.length - 1, value: state.temperature, "aria-valuetext": String(data.temperatures[state.temperature]),
      oninput: (event) => { state.temperature = Number(event.target.value); slider.setAttribute("aria-valuetext", data.temperatures[state.temperature]); shown.textContent = data.temperatures[state.temperature].toFixed(1); draw((v) => v.kind === "candidates"); } });
    const shown = element("span", { class: "mono" }, data.temperatures[state.temperature].toFixed(1));
    pair.append(element("label", {}, "Temperature", slider, shown));
    if (data.live) pair.append(topP());
  }
  const axis = joint ? "seq" : "src";
  const rows = [named("Look at", pair), named(joint ? "Piece" : "Source", chips("piece", data.axes[axis], state.token, (token) => select(axis, token)))];
  if (decodes) {
    const items = data.written.map((p, i) => ({ text: p.text, spoken: `${i + 1}: ${spoken(p.text)}, ${percent(data.steps[i].probability)}`, rgb: mixed(palette.negative, 1 - data.steps[i].probability) }));
    rows.push(named("Step writes", chips("step", items, state.step, (step) => set({ step }))));
  }
  box.replaceChildren(...rows);
  document.getElementById("chosen").textContent = shortState();
  document.querySelectorAll(".controls .chips").forEach((one, i) => {
    one.scrollLeft = scrolled[i] ?? 0;
    const chip = one.querySelector('[aria-pressed="true"]');
    if (chip && (chip.offsetLeft < one.scrollLeft || chip.offsetLeft + chip.offsetWidth > one.scrollLeft + one.clientWidth))
      one.scrollLeft = chip.offsetLeft - one.clientWidth / 2;
  });
}

// The page

const drawn = [], measured = [], asked = [];

/** Draws views anew: those near the window now, the others when they come near. */
function draw(wanted = () => true) {
  for (const one of drawn) if (wanted(one.view)) one.stale = true;
  drawn.filter((one) => one.stale && isNear(one.box)).forEach(redraw);
}

function isNear(box) {
  const { top, bottom } = box.getBoundingClientRect();
  return bottom > -innerHeight && top < 2 * innerHeight;
}

function redraw(one) {
  one.stale = false;
  const open = [...one.box.querySelectorAll("details")].map((d) => d.open);
  const places = [...one.box.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
  const focused = one.box.contains(document.activeElement) ? document.activeElement.id : "";
  one.box.replaceChildren(...views[one.view.kind](one.view));
  if (focused) document.getElementById(focused)?.focus();
  one.box.querySelectorAll("details").forEach((d, i) => (d.open = open[i] ?? false));
  one.box.querySelectorAll(".scroll").forEach((s, i) => (s.scrollLeft = places[i] ?? 0));
}

function build() {
  const walk = document.getElementById("walk"), list = document.getElementById("stations");
  let part = "";
  for (const station of data.stations) {
    if (station.part !== part) {
      part = station.part;
      walk.append(element("h2", { class: "part-head" }, part));
      list.append(element("li", { class: "part" }, part));
    }
    walk.append(section(station));
    list.append(element("li", {}, element("a", { href: `#${anchor(station)}` }, station.title)));
  }
}

const hints = {
  grid: "Press one to enlarge it, and to look at that layer and head everywhere on this page.",
  heads_off: "Press a row to look at that head.",
  checkpoints: "Move the slider.",
};
const anchor = (station) => station.id.replaceAll("{layer}.", "").replaceAll(".", "-");

function section(station) {
  const box = element("section", { class: "station", id: anchor(station), "aria-labelledby": `${anchor(station)}-title` },
    element("h3", { id: `${anchor(station)}-title` }, station.title), element("p", { class: "says" }, station.says));
  if (station.formula) {
    const formula = element("div", { class: "formula", tabindex: "0", role: "group", "aria-label": `formula: ${station.title}` });
    formula.innerHTML = station.formula;
    box.append(formula);
  }
  if (station.shapes.length) {
    const list = element("ul", { class: "shapes" });
    measured.push({ station, list });
    box.append(list);
  }
  for (const view of station.views) {
    const place = element("div", { class: "view" });
    drawn.push({ view: { ...view, id: `view-${drawn.length}` }, box: place, stale: true });
    box.append(place);
  }
  const place = element("div");
  asked.push({ station, place });
  box.append(place);
  if (hints[station.views[0]?.kind]) box.querySelector(".says").append(` ${hints[station.views[0].kind]}`);
  const [file, name] = station.code;
  const origin = element("div", { class: "origin" });
  if (station.sources.length) origin.append(element("p", {}, `Source: ${station.sources.join("; ")}`));
  if (file) origin.append(element("p", {}, "Code: ", codeLink(file, name)));
  if (origin.children.length) box.append(origin);
  return box;
}

/** The name of a function; on the site of the documentation, which has its text, a link. */
function codeLink(file, name) {
  const code = element("code", {}, `${file}: ${name}`), page = `_modules/tfm/${file.replace(/\.py$/, ".html")}`;
  const isThere = document.querySelector('meta[name="source-pages"]').content.split(" ").includes(page);
  return isThere ? element("a", { href: `${page}#${name}` }, code) : code;
}

/** The sizes of this sentence, at all stations. */
function measures() {
  for (const { station, list } of measured)
    list.replaceChildren(...station.shapes.map(([symbol, meaning]) => element("li", {}, element("code", {}, symbol.replace(/\{(src|tgt|seq)\}/g, (_, axis) => data.axes[axis].length)), meaning ? ` ${meaning}` : "")));
}

/** The questions, with the answers of this sentence. */
function answers() {
  for (const { station, place } of asked)
    place.replaceChildren(...data.questions.filter((one) => one.station === station.id).map((one) => {
      const number = data.questions.indexOf(one);
      const show = Object.keys(one.show).length ? element("button", { type: "button", class: "quiet", onclick: () => set({ ...one.show }) }, "Show me") : "";
      return element("details", { class: "question" }, element("summary", {}, `Question ${number + 1} of ${data.questions.length}: `, ...marked(one.question)), element("p", {}, ...marked(one.answer)), show, " ", toQuestion(number - 1, "Previous question"), " ", toQuestion(number + 1, "Next question"));
    }));
}

/** A sentence in which pieces between quotation marks are marked as pieces. */
function marked(text) {
  const pieces = new Map([...Object.values(data.axes).flat(), ...data.written, ...data.steps.flatMap((one) => one.candidates)].map((one) => [spoken(one.text), one.text]));
  return text.split(/“([^”]+)”/).map((part, i) => (i % 2 ? (pieces.has(part) ? pieceName(pieces.get(part)) : `“${part}”`) : part));
}

function toQuestion(number, text) {
  const one = data.questions[number];
  return one ? element("a", { class: "quiet", href: `#${anchor({ id: one.station })}` }, text) : "";
}

function header() {
  document.getElementById("sentence").textContent = data.text;
  const written = document.getElementById("written");
  if (decodes) written.replaceChildren(coloured(data.written.slice(0, -1).map((p) => p.text), data.steps.map((s) => s.probability)).firstChild, element("span", { class: "visually-hidden" }, data.output.text));
  const c = data.config;
  const kind = { encoder_decoder: "encoder-decoder", decoder_only: "decoder-only", encoder_only: "encoder-only" }[data.architecture];
  const layers = ["encoder", "decoder"].map((stack) => data.layers[stack] && `${data.layers[stack]} ${stack} layer${data.layers[stack] > 1 ? "s" : ""}`).filter(Boolean).join(", ");
  const search = data.search ? ` Found by ${data.search}. Darker means less probable.` : "";
  document.getElementById("facts").textContent = `${data.run}, ${data.checkpoint}: ${kind}, ${layers}, ${data.heads} heads, d_model ${c.d_model}, ${c.norm_order}-norm.${search}`;
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light" : "Dark";
  readPalette();
}

/** What was chosen while a view was far away is drawn as it comes near. */
function drawOnApproach() {
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const one = drawn.find((each) => each.box === entry.target);
      if (entry.isIntersecting && one.stale) redraw(one);
    }
  }, { rootMargin: "100% 0px" });
  for (const one of drawn) observer.observe(one.box);
}

function follow() {
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  document.getElementById("current").textContent = data.stations[0].title;
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) {
      const link = links.get(entry.target.id), list = document.getElementById("stations");
      links.forEach((a) => a.removeAttribute("aria-current"));
      link.setAttribute("aria-current", "true");
      document.getElementById("current").textContent = link.textContent;
      const { top, bottom } = link.getBoundingClientRect(), box = list.getBoundingClientRect();
      if (top < box.top || bottom > box.bottom) list.scrollTop += top - box.top - box.height / 3;
    }
  }, { rootMargin: "-30% 0px -60% 0px" });
  document.querySelectorAll(".station").forEach((one) => observer.observe(one));
}

/** No title hides below what stays at the top. */
function keepClear() {
  const bar = document.querySelector(".controls");
  new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`)).observe(bar);
}

function begin() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = (theme) => { applyTheme(theme); header(); controls(); draw(); };
  applyTheme(dark.matches ? "dark" : "light");
  document.getElementById("theme").addEventListener("click", () => repaint(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => repaint(dark.matches ? "dark" : "light"));
  const small = matchMedia("(max-width: 56rem)"), fold = () => ["nav", "look"].forEach((id) => (document.getElementById(id).open = !small.matches));
  fold();
  small.addEventListener("change", fold);
  document.getElementById("stations").addEventListener("click", () => { if (small.matches) document.getElementById("nav").open = false; });
  Object.assign(state, data.begin ?? {});
  if (joint && data.begin.token === null) state.token = prefix + state.step;
  state.token ??= 0;
  header();
  document.getElementById("machine").append(machine());
  build();
  measures();
  answers();
  controls();
  drawn.forEach(redraw);
  drawOnApproach();
  follow();
  keepClear();
  if (data.live) openLive();
}
