"use strict";
// A live page: the reader's own sentences and experiments. The engine computes, in a worker; page.js draws.

const engine = openEngine(document.getElementById("engine").textContent, (problem) => say(`The engine failed: ${problem}`, true));
const LIMIT = 1e-4; // how far the numbers of the engine may be from those of tfm
const WAIT = 500; // milliseconds after the last key
const own = { ...data, arrays }; // what tfm explain has computed
const mine = { text: data.text, off: [], patch: null, base: null, timer: 0, kept: null, other: { typed: "", text: "", pieces: [], layer: 0, from: 0, to: 0 } };

function say(text, isProblem = false) {
  const line = document.getElementById("computed");
  line.textContent = text;
  line.classList.toggle("problem", isProblem);
}

// The engine and tfm

/** The largest difference of two sets of arrays and where it is; of numbers larger than 1 it is a share of the largest. */
function difference(found) {
  let worst = { far: 0, name: "", count: 0 };
  for (const [name, { shape, values }] of Object.entries(own.arrays)) {
    if (name.startsWith("checkpoints.")) continue;
    const other = found.arrays[name], scale = Math.max(1, largest(values));
    if (other?.shape.join() !== shape.join()) return { ...worst, far: Infinity, name };
    worst.count += values.length;
    for (let i = 0; i < values.length; i++) {
      const far = values[i] === other.values[i] ? 0 : Math.abs(values[i] - other.values[i]) / scale;
      if (!(far <= worst.far)) worst = { ...worst, far, name };
    }
  }
  return worst;
}

/** Computes the page's own sentence, and says how far it agrees with what tfm has computed. */
function agree(found) {
  const { far, name, count } = difference(found), line = document.getElementById("agreement");
  const isSame = own.written.every((one, i) => one.id === found.written[i]?.id) && own.written.length === found.written.length;
  const isGood = far < LIMIT && isSame, digits = far ? far.toExponential(1).replace("-", "−") : "0";
  line.classList.toggle("problem", !isGood);
  line.textContent = isGood
    ? `Live: this page has computed ${count.toLocaleString("en")} numbers of this sentence again. They agree with those of tfm: none is more than ${digits} away.`
    : `This page has computed this sentence again, and does not agree with tfm: ${isSame ? "" : "it writes another output; "}${name} is ${digits} away, and the limit is 1e−4. Do not trust what it computes for other sentences.`;
}

// Sentences

/** Shows what the engine has found, or tfm's own numbers. */
function take(found) {
  Object.assign(data, found);
  arrays = found.arrays;
  const axis = data.axes[joint ? "seq" : "src"];
  prefix = joint ? data.axes.seq.length - data.axes.tgt.length : 0;
  state.step = Math.min(state.step, Math.max(data.written.length - 1, 0));
  state.token = joint ? prefix + state.step : Math.min(state.token, axis.length - 1);
  mine.kept = null;
  header();
  controls();
  measures();
  draw();
}

const isOwn = () => mine.text === own.text && !mine.off.length && !mine.patch;

/** Computes a sentence with the experiment that is going on. */
async function compute() {
  const { text, off, patch } = mine;
  clearTimeout(mine.timer);
  say("computing ..");
  document.getElementById("back").hidden = isOwn();
  const started = performance.now();
  try {
    const { result } = await engine.ask({ kind: "explain", text, experiment: { off, patch } }, ({ result }) => {
      if (!off.length && !patch) mine.base = result;
      take({ ...result, snapshots: isOwn() ? own.snapshots : [], heads_off: null, left_out: undefined, questions: [] });
      answers();
      report();
      say(`computed in ${Math.round(performance.now() - started).toLocaleString("en")} ms; what happens without each piece and head follows`);
    });
    Object.assign(data, result);
    answers();
    draw((view) => ["heads_off", "left_out", "switches", "patch"].includes(view.kind));
    say(`All numbers below are of ${off.length || patch ? "the experiment" : "this sentence"}. Computed in ${Math.round(performance.now() - started).toLocaleString("en")} ms.`);
  } catch (error) {
    if (!error.isStop) say(`${error.message}. The numbers below are still those of “${data.text}”.`, true);
  }
}

/** Says what an experiment has changed. */
function report() {
  const line = document.getElementById("experiment"), { off, patch, base } = mine;
  line.hidden = !off.length && !patch;
  if (line.hidden) return;
  const parts = off.map(([module, head]) => `without ${headName(module, head)}`);
  if (patch) parts.push(`with the state of ${mine.other.pieces[patch.from]?.text ?? "another piece"} (“${patch.text}”) in the place of ${piece(joint ? "seq" : "src", patch.to)} after layer ${patch.layer + 1}`);
  const before = base && base.text === data.text ? base : null;
  const effect = !decodes ? `The cosine of the vectors with and without the change is ${number(data.likeness ?? 1, 4)}.`
    : before && before.output.text === data.output.text ? "The output is the same."
    : `The output is now “${data.output.text || "nothing"}”${before ? `, before it was “${before.output.text}”` : ""}.`;
  const end = element("button", { type: "button", class: "quiet", onclick: () => { Object.assign(mine, { off: [], patch: null }); compute(); } }, "End the experiment");
  line.replaceChildren(element("b", {}, "Experiment: "), `${parts.join("; ")}. ${effect} `, end);
}

function headName(module, head) {
  const [stack, , layer, kind] = module.split(".");
  return `head ${head + 1} of ${kind === "cross_attn" ? "cross" : "self"}-attention, ${stack} layer ${Number(layer) + 1}`;
}

// Views

const pending = (text) => [element("p", { class: "facts" }, text)];

Object.assign(views, {
  left_out(view) {
    const found = data.left_out;
    if (found === null) return pending("Not while a state of another sentence is in the place of one of this.");
    if (!found) return pending("computing ..");
    if (found.cosines) {
      const most = Math.max(...found.cosines.map((one) => 1 - one), 1e-6);
      const items = found.pieces.map((text, i) => bar(text, (1 - found.cosines[i]) / most, number(found.cosines[i], 4)));
      return [element("p", { class: "label" }, element("span", {}, "cosine of the vectors with and without each piece; the longer the bar, the farther the vector turned")), element("div", { class: "bars" }, ...items.flat())];
    }
    const changes = found.changes.map((one) => one[state.step]), most = Math.max(...changes.map(Math.abs), 1e-6);
    const items = found.pieces.flatMap((text, i) => (changes[i] === null ? [] : bar(text, Math.abs(changes[i]) / most, number(changes[i], 2), false, changes[i] > 0)));
    const written = data.written[state.step].text;
    const about = element("p", { class: "label" }, element("span", {}, "change of the log-probability of ", pieceName(written), ` at step ${state.step + 1}, if this piece is missing`));
    const scale = Math.max(...found.changes.flat().map((one) => Math.abs(one ?? 0)), 1e-6);
    const heads = data.written.map((one, t) => element("th", { scope: "col", class: t === state.step ? "is-column" : "" },
      element("button", { type: "button", id: `${view.id}-column-${t}`, "aria-pressed": String(t === state.step), onclick: () => set({ step: t }) }, one.text)));
    const rows = found.pieces.map((text, i) => element("tr", {}, element("th", { scope: "row" }, text), ...found.changes[i].map((one) => {
      const rgb = one === null ? palette.paper : signed(one, scale), cell = element("td", {}, one === null ? "" : number(one, 2));
      cell.style.background = css(rgb);
      cell.style.color = readable(rgb);
      return cell;
    })));
    const table = element("table", { class: "matrix" }, element("caption", { class: "visually-hidden" }, "rows: the piece left out; columns: the piece written"), element("thead", {}, element("tr", {}, element("td", {}), ...heads)), element("tbody", {}, ...rows));
    return [about, items.length ? element("div", { class: "bars" }, ...items) : pending("Nothing stands before this step.")[0], element("p", { class: "label" }, element("span", {}, element("b", {}, "all steps"), " rows: the piece left out; columns: the piece written")), scroller("each piece left out", table)];
  },

  switches(view) {
    const rows = attentionsOf().map((module) => {
      const [stack, , layer, kind] = module.split("."), name = `${stack} layer ${Number(layer) + 1}, ${kind === "cross_attn" ? "cross-attention" : "self-attention"}`;
      const buttons = Array.from({ length: data.heads }, (_, head) => {
        const isOff = mine.off.some(([one, number]) => one === module && number === head);
        return element("button", { type: "button", class: "chip", id: `${view.id}-${module}-${head}`, "aria-pressed": String(isOff), "aria-label": `${isOff ? "switched off" : "switch off"}: ${headName(module, head)}`,
          onclick: () => { mine.off = isOff ? mine.off.filter(([one, number]) => one !== module || number !== head) : [...mine.off, [module, head]]; compute(); draw((one) => one.kind === "switches"); } }, `${head + 1}${isOff ? " off" : ""}`);
      });
      return element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, element("span", { class: "pair" }, ...buttons)));
    });
    return [scroller("heads to switch off", element("table", { class: "list" }, ...rows))];
  },

  patch(view) {
    const { other } = mine, axis = data.axes[joint ? "seq" : "src"], stack = data.layers.encoder || data.layers.decoder;
    const select = (name, text, options, key) => element("label", {}, text, element("select", { id: `${view.id}-${name}`, onchange: (event) => (other[key] = Number(event.target.value)) }, ...optionsOf(options, other[key])));
    const input = element("input", { id: `${view.id}-text`, type: "text", value: other.typed, autocomplete: "off", spellcheck: "false", oninput: () => { other.typed = input.value; clearTimeout(mine.timer); mine.timer = setTimeout(() => readOther(view, input.value), WAIT); } });
    const go = element("button", { type: "submit", class: "quiet" }, "Put it there");
    const form = element("form", { class: "patch", onsubmit: async (event) => {
      event.preventDefault();
      if (!(await readOther(view, input.value))) return;
      mine.patch = { text: other.text, layer: other.layer, from: other.from, to: other.to };
      compute();
    } }, element("label", {}, "The other sentence", input), select("from", "what stands at", other.pieces.map((one) => one.text), "from"),
      select("layer", "after layer", Array.from({ length: stack }, (_, i) => String(i + 1)), "layer"), select("to", "takes the place of", axis.map((one) => one.text), "to"), go,
      element("p", { class: "facts", id: `${view.id}-problem`, role: "status" }));
    return [form];
  },
});

const attentionsOf = () => Object.keys(arrays).filter((name) => /_attn\.weights$/.test(name) && !name.startsWith("checkpoints.")).map((name) => name.replace(/\.weights$/, ""));
const optionsOf = (texts, chosen) => texts.map((text, i) => element("option", { value: i, selected: i === chosen ? "" : null }, `${i + 1}: ${text}`));

/** Reads the other sentence; true if it has pieces. */
async function readOther(view, text) {
  const { other } = mine, problem = document.getElementById(`${view.id}-problem`);
  try {
    const { result } = await engine.ask({ kind: "pieces", text });
    if (other.text !== text) Object.assign(other, { from: 0 });
    Object.assign(other, { text, pieces: result });
    document.getElementById(`${view.id}-from`).replaceChildren(...optionsOf(result.map((one) => one.text), other.from));
    problem.textContent = "";
    return true;
  } catch (error) {
    problem.textContent = `${error.message}.`;
    return false;
  }
}

/** The pieces that remain at the step, temperature and top-p that are chosen; asks for them if they are not there yet. */
function kept() {
  const step = state.step, temperature = data.temperatures[state.temperature], top_p = state.topP, key = `${step} ${temperature} ${top_p}`;
  if (mine.kept?.key === key) return mine.kept.result;
  if (mine.isReady) engine.ask({ kind: "restricted", step, temperature, top_p }).then(({ result }) => {
    const isNew = mine.kept?.key !== key;
    mine.kept = { key, result };
    if (isNew) draw((view) => view.kind === "candidates");
  });
  return null;
}

// The page

/** Opens the engine, and compares it with tfm. */
async function openLive() {
  const form = document.getElementById("try"), input = document.getElementById("another");
  const go = () => {
    if (input.value.trim() === "") return;
    Object.assign(mine, { text: input.value, patch: null });
    compute();
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  input.addEventListener("input", () => { clearTimeout(mine.timer); mine.timer = setTimeout(go, WAIT); });
  document.getElementById("back").addEventListener("click", () => {
    clearTimeout(mine.timer);
    engine.stop();
    Object.assign(mine, { text: own.text, off: [], patch: null });
    input.value = own.text;
    compute();
  });
  input.value = data.text;
  document.querySelector('label[for="another"]').textContent = data.begins ? "Begin with" : "Try your own sentence";
  document.getElementById("agreement").textContent = "This page computes its numbers again ..";
  try {
    await engine.ask({ kind: "open", model: document.getElementById("model").textContent });
    const { result } = await engine.ask({ kind: "explain", text: data.text, experiment: null }, ({ result }) => {
      mine.base = result;
      mine.isReady = true;
      form.hidden = false;
      agree(result);
      draw((view) => view.kind === "candidates");
    });
    data.left_out = result.left_out;
    draw((view) => view.kind === "left_out");
  } catch (error) {
    if (error.isStop) return; // by a reader who was quick
    document.getElementById("agreement").textContent = `This page cannot compute here: ${error.message}. The numbers below are those of tfm.`;
    document.getElementById("agreement").classList.add("problem");
  }
}
