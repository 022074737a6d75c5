"use strict";
/* Explains another sentence as `tfm explain` does, inside the engine's worker: engine.js stands before this file.
 *
 *   trace          every intermediate result: trace.py
 *   experiments    heads that are switched off, a hidden state from elsewhere
 *   searches       watched: searches.py
 *   explainer      all of it for one sentence: explanation.py, probes.py
 *   session        messages in, messages out
 *
 * What is found has the names of the page's data. questions.js, which stands after this file, has the answers.
 */

const CANDIDATES = 20, EARLY_CANDIDATES = 3, SAMPLES = 3, SHOWN_BEAM = 3, CONTINUATION = 24; // explanation.py
const TEMPERATURES = Array.from({ length: 20 }, (_, i) => (i + 1) / 10);
const PENALTY = 0.6; // LENGTH_PENALTY of seq2seq/decoding/config.py

// --- trace ---

/** Collects all that a model computes: { name: { shape, values } }, vectors of heads as (H, T, size). */
function tracer() {
  const arrays = {};
  const look = (name, values, shape) => {
    const isOfHeads = shape.length === 3 && /\.(q|k|v|heads)$/.test(name);
    arrays[name] = isOfHeads ? byHead(values, shape) : { shape, values: Float32Array.from(values) };
  };
  return { arrays, look };
}

function byHead(values, [rows, heads, size]) {
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row++)
    for (let head = 0; head < heads; head++)
      turned.set(values.subarray((row * heads + head) * size, (row * heads + head + 1) * size), (head * rows + row) * size);
  return { shape: [heads, rows, size], values: turned };
}

// --- experiments ---

/** What changes a model while it computes. `off` are [attention, head]; `patch` is { name, place, vector }. */
function changing(off, patch) {
  return (name, values, [rows, heads, size], places) => {
    for (const [module, head] of off)
      if (name === `${module}.heads`)
        for (let row = 0; row < rows; row++) values.fill(0, (row * heads + head) * size, (row * heads + head + 1) * size);
    if (patch && name === patch.name)
      places.forEach((place, row) => { if (place === patch.place) values.set(patch.vector, row * patch.vector.length); });
  };
}

// --- searches ---

/** A search's step that writes down what the search looks at: see `WatchedStep`. */
class WatchedStep {
  constructor(step, state, task, { size, noRepeat = 0 }) {
    Object.assign(this, { inner: step, state, task, size, noRepeat, position: 0, moved: null, rows: [], ids: [], logProbs: [], extensions: [] });
  }

  /** Row i becomes what row `rows[i]` was. */
  reorder(rows) {
    this.state.reorder(rows);
    this.moved = this.moved ? rows.map((row) => this.moved[row]) : rows;
  }

  async step(last) {
    if (this.position) {
      const rows = this.moved ?? last.map((_, row) => row);
      this.ids = rows.map((row, i) => [...this.ids[row], last[i]]);
      const numbers = this.note(rows.map((row, i) => [row, last[i]]));
      this.rows = rows.map((row, i) => numbers.get(`${row} ${last[i]}`));
    } else {
      this.rows = last.map(() => null);
      this.ids = last.map(() => []);
    }
    this.moved = null;
    const found = await this.inner(last);
    this.logProbs = found.map((one, row) => this.possible(one.slice(), this.ids[row]));
    this.position++;
    return found;
  }

  /** Log-probabilities as the search changes them: by a given beginning, repetitions and its limit. */
  possible(logProbs, ids) {
    if (ids.length < this.task.prefix.length) leaveOnly(logProbs, this.task.prefix[ids.length]);
    else forbidRepeats(logProbs, ids, this.noRepeat);
    if (ids.length + 1 >= this.task.limit) leaveOnly(logProbs, EOS);
    return logProbs;
  }

  /** Writes down the likeliest extensions of the last step and, wherever they stand, those that were kept. */
  note(kept) {
    const totals = this.rows.map((row) => (row === null ? 0 : this.extensions[row].total));
    const likely = likeliestExtensions(totals.map((logProb) => ({ logProb })), this.logProbs, 2 * this.size);
    const ranks = new Map(likely.map(({ row, token }, rank) => [`${row} ${token}`, rank])), numbers = new Map();
    const isKept = new Set(kept.map((one) => one.join(" ")));
    for (const key of new Set([...ranks.keys(), ...isKept])) {
      const [row, token] = key.split(" ").map(Number);
      const ends = token === EOS && (ranks.get(key) ?? this.size) < this.size, logProb = this.logProbs[row][token];
      numbers.set(key, this.extensions.length);
      const fate = isKept.has(key) ? "kept" : ends ? "ended" : "cut";
      this.extensions.push({ parent: this.rows[row], token, log_prob: logProb, total: totals[row] + logProb, position: this.position - 1, fate });
    }
    return numbers;
  }

  finish() {
    this.note([]);
    return this.extensions;
  }
}

// --- explainer ---

class Explainer {
  constructor(machine) {
    Object.assign(this, { machine, model: machine.model, begins: machine.header.purpose === "language model" });
    this.vocabulary = this.begins ? machine.tgt : machine.src;
    this.isJoint = machine.header.config.architecture === "decoder_only";
  }

  /** A text as the model reads it; see `Reading`. Throws an Error with what is wrong with it. */
  read(text) {
    const cleaned = clean(text), { machine } = this, longest = this.model.config.max_seq_len;
    const masked = new Masked(cleaned, this.begins ? [] : machine.header.carried);
    if (!masked.text) throw new Error("there is nothing to explain: the text is blank");
    const isTranslated = machine.header.purpose === "translator";
    if (isTranslated && !machine.takesSearch(cleaned)) throw new Error("there is nothing to explain: a text without letters is only copied");
    const ids = this.vocabulary.encode(isTranslated ? inUsualForm(masked.text, this.vocabulary, machine.header.facts)[0] : masked.text);
    if (!ids.length) throw new Error("there is nothing to explain: the vocabulary knows no letter of the text");
    if (ids.length >= longest) throw new Error(`the text has ${ids.length} pieces, but this model reads at most ${longest - 1}`);
    if (this.begins && ids.includes(UNK)) throw new Error("the text has a character or a word that is not in the vocabulary");
    const src = this.begins ? [] : [...ids, EOS], prefix = this.begins ? ids : [];
    const limit = this.begins ? Math.min(ids.length + CONTINUATION, longest) : machine.limitOf?.({ ids, prefix, phrases: [] });
    return { text: cleaned, masked, ids, src, task: { limit, prefix, key: "0" } };
  }

  /** Does something while the model is looked at, and changed. */
  async during(looks, work) {
    this.model.look = looks.length ? (...shown) => looks.forEach((look) => look(...shown)) : null;
    try {
      return await work();
    } finally {
      this.model.look = null;
    }
  }

  /** The changes of an experiment { off, patch: { text, layer, from, to } }, and the pieces of its other text. */
  async changes(experiment) {
    const { off = [], patch = null } = experiment ?? {};
    if (!patch) return { looks: off.length ? [changing(off, null)] : [], others: null };
    const { ids, pieces: others } = this.piecesOf(patch.text), { arrays, look } = tracer(), stack = this.model.encoder ? "encoder" : "decoder";
    await this.during([look], async () => (this.model.encoder ? this.model.encode(ids) : this.model.forward(ids, [])));
    const name = `${stack}.layers.${patch.layer}.feed_forward_residual`, size = this.model.config.d_model;
    const from = Math.min(patch.from, ids.length - 1), vector = arrays[name].values.subarray(from * size, (from + 1) * size);
    return { looks: [changing(off, { name, place: patch.to, vector })], others };
  }

  /** The ids of a text as the first stack reads them, and their pieces. */
  piecesOf(text) {
    const { ids, src, masked } = this.read(text), all = this.begins ? [BOS, ...ids] : src;
    return { ids: all, pieces: all.map((id) => ({ id, text: this.pieceOf(this.vocabulary, masked, id) })) };
  }

  pieceOf(vocabulary, masked, id) {
    return masked.unmask(vocabulary.pieces[id], this.machine.letter);
  }

  /** All numbers of one sentence, as the page has them. */
  async explain(text, experiment) {
    const reading = this.read(text), { looks, others } = await this.changes(experiment), found = { text: reading.text, others };
    Object.assign(this, { reading, looks, found });
    if (!this.model.decoder) return this.explainVector();
    const { machine, model } = this, options = machine.searchOptions(), { task, src } = reading;
    const best = (await this.during(looks, () => this.search(task, options)))[0];
    Object.assign(this, { best, tgt: [BOS, ...best.ids] });
    const { arrays, look } = tracer();
    await this.during([...looks, look], () => model.forward(src, this.tgt));
    const piece = (id) => ({ id, text: this.pieceOf(machine.tgt, reading.masked, id) });
    const axis = src.map((id) => ({ id, text: this.pieceOf(machine.src, reading.masked, id) })), tgt = this.tgt.map(piece);
    Object.assign(found, {
      arrays, axes: this.isJoint ? { seq: [...axis, ...tgt], tgt } : { src: axis, tgt },
      written: [...best.ids, EOS].map(piece), prefix: task.prefix.length, at_limit: best.ids.length + 1 === task.limit,
      search: options.size > 1 ? `beam search with ${options.size} hypotheses and length penalty ${pythonNumber(options.alpha)}` : "greedy search",
      steps: this.steps(arrays, piece), snapshots: [],
    });
    await this.during(looks, async () => {
      found.output = this.output(best);
      found.greedy = this.output((await this.search(task, { size: 1, alpha: PENALTY }))[0]);
      found.samples = [];
      for (let i = 0; i < SAMPLES; i++)
        found.samples.push(this.output((await this.search({ ...task, key: String(i) }, { size: 1, alpha: PENALTY, temperature: 1 }))[0]));
      found.beam = await this.beam(options);
    });
    return found;
  }

  async explainVector() {
    const { found, reading, looks } = this, { arrays, look } = tracer();
    await this.during([...looks, look], () => this.model.vector(reading.src));
    const axis = reading.src.map((id) => ({ id, text: this.pieceOf(this.machine.src, reading.masked, id) }));
    const plain = this.model.vector(reading.src), changed = arrays["sentence.vector"].values;
    const likeness = looks.length ? cosine(plain, changed) : null; // of the vector with the changes, and without
    return Object.assign(found, { arrays, axes: { src: axis }, written: [], steps: [], snapshots: [], likeness });
  }

  search(task, options) {
    return this.machine.search(this.reading.src, task, options);
  }

  /** A row of logits without the pieces that no text has. */
  allowed(logits) {
    const row = logits.slice();
    for (const id of this.model.forbidden) row[id] = -Infinity;
    return row;
  }

  /** Log-probabilities of each piece, after each piece of an output; call it while the model is changed. */
  rowsOf(src, ids) {
    return this.model.forward(src, [BOS, ...ids]).map((logits) => logSoftmax(this.allowed(logits)));
  }

  /** Log-probabilities of the pieces of an output and of its end. */
  gainsOf(src, ids) {
    return this.rowsOf(src, ids).map((row, i) => row[ids[i] ?? EOS]);
  }

  output({ ids, logProb, score }) {
    const { machine, reading } = this, rows = this.rowsOf(reading.src, ids), written = [...ids, EOS];
    return {
      text: reading.masked.unmask(clean(machine.tgt.decode(ids)), machine.letter),
      pieces: written.map((id) => this.pieceOf(machine.tgt, reading.masked, id)),
      probabilities: written.map((id, i) => Math.exp(rows[i][id])),
      ranks: written.map((id, i) => 1 + rows[i].reduce((count, one) => count + (one > rows[i][id]), 0)),
      log_prob: logProb, score,
    };
  }

  /** The possible pieces at each step of the output. */
  steps(arrays, piece) {
    const { shape: [count, size], values } = arrays.output_layer, { model } = this, d = model.config.d_model;
    const early = model.decoder.layers.map((_, layer) => {
      const x = arrays[`decoder.layers.${layer}.feed_forward_residual`].values.slice(-count * d);
      const normed = model.decoder.norm ? layerNorm(model.decoder.norm, x, count, model.config.norm_eps) : x;
      return linear(model.output, normed, count);
    });
    return [...this.best.ids, EOS].map((token, t) => {
      const row = this.allowed(values.subarray(t * size, (t + 1) * size)), likely = largestOf(row, CANDIDATES);
      const named = likely.includes(token) ? likely : [...likely, token], normalisers = TEMPERATURES.map((T) => logNormaliser(row, T));
      return {
        candidates: named.map(piece), logits: named.map((id) => row[id]), log_normalisers: normalisers,
        probability: Math.exp(row[token] - logNormaliser(row, 1)),
        early: early.map((all) => {
          const logits = this.allowed(all.subarray(t * size, (t + 1) * size)), whole = logNormaliser(logits, 1);
          return largestOf(logits, EARLY_CANDIDATES).map((id) => [piece(id).text, Math.exp(logits[id] - whole)]);
        }),
      };
    });
  }

  /** All that beam search looks at; where the run searches greedily, a small beam is shown. */
  async beam(options) {
    const { machine, reading, model } = this, size = options.size > 1 ? options.size : SHOWN_BEAM, state = model.begin(reading.src);
    const chosen = { ...options, size, noRepeat: options.size > 1 ? options.noRepeat : 0 };
    const watched = new WatchedStep(machine.stepOf(state), state, reading.task, chosen);
    const hypotheses = await beam((last) => watched.step(last), watched, reading.task, chosen);
    const name = (token) => this.pieceOf(machine.tgt, reading.masked, token);
    return {
      size, length_penalty: options.alpha, hypotheses: hypotheses.slice(0, size).map((one) => this.output(one)),
      extensions: watched.finish().map((one) => ({ ...one, piece: name(one.token) })),
    };
  }

  /** The names of the attentions, in the order in which they compute. */
  get attentions() {
    const layers = [this.model.encoder, this.model.decoder].flatMap((stack) => stack?.layers ?? []);
    return layers.flatMap(({ self, cross }) => [self, cross].filter(Boolean).map((one) => one.name));
  }

  /** The model without each head in turn, beside what is changed already; see `without_each_head`. */
  async headsOff() {
    const found = [], { reading, best, looks } = this;
    for (const module of this.attentions)
      for (let head = 0; head < this.model.config.num_heads; head++)
        await this.during([...looks, changing([[module, head]], null)], async () => {
          const gains = this.gainsOf(reading.src, best.ids), [{ ids }] = await this.search(reading.task, { size: 1, alpha: PENALTY });
          const text = reading.masked.unmask(clean(this.machine.tgt.decode(ids)), this.machine.letter);
          found.push({ module, head, log_prob: gains.reduce((sum, one) => sum + one, 0), log_probs: gains, text });
        });
    return found;
  }

  /**
   * What becomes of the output, or of the sentence's vector, if each piece of the text is left out in turn.
   *
   * Of an output: the change of the log-probability of each piece, `changes[i][t]`; null where that piece comes before
   * piece i. Of a vector: the cosine with the whole text's vector, `cosines[i]`. Nothing while a state is patched.
   */
  async leaveOut() {
    const { model, reading, best, looks } = this, without = (ids, i) => ids.filter((_, at) => at !== i);
    const names = (ids, vocabulary) => ids.map((id) => this.pieceOf(vocabulary, reading.masked, id));
    if (this.found.others) return null; // a patch is at a place, and places move
    return this.during(looks, async () => {
      if (!model.decoder) {
        const whole = model.vector(reading.src);
        return { pieces: names(reading.ids, this.machine.src), cosines: reading.ids.map((_, i) => cosine(whole, model.vector(without(reading.src, i)))) };
      }
      if (!this.begins) {
        const whole = this.gainsOf(reading.src, best.ids), changes = [];
        for (let i = 0; i < reading.ids.length; i++) {
          await this.machine.pause();
          changes.push(this.gainsOf(without(reading.src, i), best.ids).map((one, t) => one - whole[t]));
        }
        return { pieces: names(reading.ids, this.machine.src), changes };
      }
      const whole = this.gainsOf([], best.ids), changes = [];
      for (let i = 0; i < best.ids.length; i++) {
        await this.machine.pause();
        const rest = this.gainsOf([], without(best.ids, i));
        changes.push(whole.map((one, t) => (t > i ? rest[t - 1] - one : null)));
      }
      return { pieces: names(best.ids, this.machine.tgt), changes };
    });
  }

  /** The pieces that remain at a step under a temperature and top-p, likeliest first, and how many there are. */
  restricted(step, temperature, topP) {
    const { shape: [, size], values } = this.found.arrays.output_layer;
    const chosen = restricted(this.allowed(values.subarray(step * size, (step + 1) * size)), { temperature, topP });
    return { shares: chosen.slice(0, CANDIDATES + 1), count: chosen.filter(([, share]) => share > 0).length };
  }
}

const cosine = (a, b) => a.reduce((sum, one, i) => sum + one * b[i], 0) / (Math.hypot(...a) * Math.hypot(...b));
/** A number as Python writes a float. */
const pythonNumber = (x) => (Number.isInteger(x) ? `${x}.0` : String(x));

/** log sum exp(x / T). */
function logNormaliser(row, T) {
  let most = -Infinity, sum = 0;
  for (const one of row) if (one > most) most = one;
  for (const one of row) sum += Math.exp((one - most) / T);
  return most / T + Math.log(sum);
}

/** The places of the largest numbers, largest first, -inf left out. */
function largestOf(row, count) {
  const places = [...row.keys()].filter((i) => row[i] > -Infinity);
  return places.sort((a, b) => row[b] - row[a]).slice(0, count);
}

// --- session ---

Object.assign(Session.prototype, {
  /** Numbers of a sentence, then what takes longer. A later one stops an earlier one, and begins when that has stopped. */
  async explain({ id, text, experiment }) {
    const mine = (this.current = { id }), before = this.working;
    this.working = (async () => {
      await before?.catch(() => {});
      if (this.current !== mine) throw new Stopped("stopped");
      const explainer = new Explainer(this.machine), found = await explainer.explain(text, experiment);
      if (this.current !== mine) throw new Stopped("stopped");
      this.explainer = explainer;
      this.answer({ kind: "one", id, result: found });
      const rest = { left_out: await explainer.leaveOut(), heads_off: explainer.model.decoder ? await explainer.headsOff() : [] };
      Object.assign(found, rest);
      return { ...rest, questions: questions(found, this.machine.header.config) };
    })();
    this.answer({ kind: "done", id, result: await this.working });
  },

  restricted({ id, step, temperature, top_p }) {
    this.answer({ kind: "done", id, result: this.explainer.restricted(step, temperature, top_p) });
  },

  /** The pieces of a text, as its positions are in the stack that reads it. */
  pieces({ id, text }) {
    this.answer({ kind: "done", id, result: new Explainer(this.machine).piecesOf(text).pieces });
  },
});

if (typeof module === "object" && module.exports) Object.assign(module.exports, { Explainer });
