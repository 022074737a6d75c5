"use strict";
// The questions of questions.py, answered from the numbers of a sentence that the page has computed itself.

/** The questions that fit a model, in the order of the walk: { station, question, answer, show }. */
function questions(found, config) {
  const isEncoder = config.architecture !== "decoder_only", stack = isEncoder ? "encoder" : "decoder";
  const crosses = config.architecture === "encoder_decoder", embedding = crosses ? "src_embedding" : "embedding";
  const about = {
    found, config, crosses, embedding, layer: `${stack}.layers.{layer}`, pieces: found.axes.seq ?? found.axes.src,
    ofLayers: (name) => Array.from({ length: config[`num_${name.split(".")[0]}_layers`] }, (_, i) => found.arrays[name.replace("{layer}", i)]),
  };
  const asked = [askPieces, askPositions, askProducts, askSoftmax, askResidual, askFeedForward];
  if (!found.output) asked.push(askSentence);
  else asked.push(askMask, ...(crosses ? [askCrossAttention, askGrid] : []), askUnsure, askEarly, askChoice, askHead);
  return asked.map((ask) => ask(about)).filter(Boolean);
}

const question = (station, text, answer, show = {}) => ({ station, question: text, answer, show });
const quoted = (text) => `“${text.replaceAll("▁", " ").trim() || text}”`;
const sumOf = (values) => values.reduce((sum, one) => sum + one, 0);
const meanOf = (values) => sumOf(values) / values.length;
const share = (part) => `${Math.round(100 * part)}%`;

/** The place of the largest number; the first of equal ones. */
function largestPlace(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/** Rows of a matrix, or of one head's map. */
function rowsOfMap({ shape, values }, head = 0) {
  const [rows, columns] = shape.slice(-2), start = head * rows * columns;
  return Array.from({ length: rows }, (_, i) => values.subarray(start + i * columns, start + (i + 1) * columns));
}

/** Layer, head and rows of all maps. */
function eachHead(maps) {
  return maps.flatMap((map, layer) => Array.from({ length: map.shape[0] }, (_, head) => ({ layer, head, rows: rowsOfMap(map, head) })));
}

function askPieces({ pieces }) {
  const texts = pieces.map((one) => one.text), spelt = texts.find((text) => /^<0x[0-9A-F]{2}>$/.test(text));
  const at = texts.findIndex((a, i) => i + 1 < texts.length && !a.startsWith("<") && a !== "▁" && !/^[<▁]/.test(texts[i + 1]));
  const answer = spelt ? `No: what the vocabulary does not have is spelt in bytes, such as ${spelt}.`
    : at >= 0 ? `No: ${quoted(texts[at])} goes on with ${quoted(texts[at + 1])}. Where a word begins, its piece begins with ▁.`
    : "Yes, in this sentence. A rare word would be cut. Where a word begins, its piece begins with ▁.";
  return question("pieces", "Is each word one piece?", answer);
}

function askPositions({ found, embedding, config }) {
  const positions = found.arrays[`${embedding}.positions`];
  if (!positions || positions.shape[0] < 2) return null;
  const [first, second] = rowsOfMap(positions), difference = second.map((one, i) => Math.abs(one - first[i])), column = largestPlace(difference);
  const turning = config.positions === "sinusoidal" ? " The columns on the left turn quickly, those on the right slowly." : "";
  const answer = `Column ${column + 1} differs most, by ${difference[column].toFixed(2)}. The last column hardly differs.${turning}`;
  return question(`${embedding}-positions`, "Which columns tell the first position from the second one?", answer, { token: 1 });
}

function askProducts({ layer, ofLayers }) {
  const [before, after] = ["products", "scores"].map((part) => {
    const { values } = ofLayers(`${layer}.self_attn.${part}`)[0], mean = meanOf(values);
    return Math.sqrt(values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (values.length - 1)).toFixed(2);
  });
  const answer = `In layer 1, the standard deviation of the products is ${before} before the division, and ${after} after it.`;
  return question(`${layer}.self_attn-scores`, "What does the division change?", answer, { layer: 0 });
}

function askSoftmax({ layer, ofLayers, pieces }) {
  const entropy = ({ rows }) => meanOf(rows.map((row) => -row.reduce((sum, one) => sum + one * Math.log(Math.max(one, 1e-30)), 0)));
  const best = eachHead(ofLayers(`${layer}.self_attn.weights`)).map((one) => ({ ...one, entropy: entropy(one) })).reduce((a, b) => (b.entropy < a.entropy ? b : a));
  const { rows, head } = best;
  const row = rows.length > 1 ? largestPlace(rows.slice(1).map((one) => Math.max(...one))) + 1 : 0, column = largestPlace(rows[row]);
  const answer = `Head ${head + 1} of layer ${best.layer + 1}: from ${quoted(pieces[row].text)} it looks at ${quoted(pieces[column].text)} with a share of ${rows[row][column].toFixed(2)}.`;
  return question(`${layer}.self_attn-weights`, "Which head knows best where to look?", answer, { layer: best.layer, head, token: row });
}

function askResidual({ layer, ofLayers }) {
  const length = (map) => meanOf(rowsOfMap(map).map((row) => Math.hypot(...row)));
  const [added, before] = ["", "_residual.in"].map((part) => ofLayers(`${layer}.self_attn${part}`).map(length));
  const times = added.map((one, i) => (one / before[i]).toFixed(2));
  const after = times.length > 1 ? `, in layer ${times.length} ${times.at(-1)} times` : "";
  const answer = `On average, what attention adds in layer 1 is ${times[0]} times as long as the vector it is added to${after}.`;
  return question(`${layer}.self_attn_residual-residual`, "Does attention replace a vector, or change it a little?", answer, { layer: 0 });
}

function askFeedForward({ layer, ofLayers, config }) {
  const { values } = ofLayers(`${layer}.feed_forward.hidden`)[0], isRelu = config.activation === "relu";
  const atWork = values.reduce((count, one) => count + (isRelu ? one > 0 : Math.abs(one) > 0.1), 0) / values.length;
  const above = isRelu ? "above 0. The others are exactly 0" : "farther than 0.1 from 0";
  return question(`${layer}.feed_forward-ff`, "How many of the hidden numbers are at work?", `In layer 1, at each position ${share(atWork)} of them on average are ${above}.`, { layer: 0 });
}

function askMask({ found }) {
  const rows = rowsOfMap(found.arrays["decoder.layers.0.self_attn.weights"]), zeros = sumOf(rows.map((row) => row.filter((one) => one === 0).length));
  const answer = `At itself alone: its share is ${rows[0][0].toFixed(2)}, and ${zeros} of ${rows.length * rows[0].length} shares in this map are exactly 0.`;
  return question("decoder.layers.{layer}.self_attn-mask", "At what can the first position look?", answer, { layer: 0, head: 0, step: 0, ...(found.axes.seq ? { token: 0 } : {}) });
}

function askCrossAttention({ found, ofLayers }) {
  const lengths = found.written.slice(0, -1).map((one) => [...one.text].length), step = lengths.length ? largestPlace(lengths) : 0;
  const all = eachHead(ofLayers("decoder.layers.{layer}.cross_attn.weights")).map(({ layer, head, rows }) => ({ layer, head, column: largestPlace(rows[step]), share: Math.max(...rows[step]) }));
  const best = all.reduce((a, b) => (b.share >= a.share ? b : a)), source = quoted(found.axes.src[best.column].text);
  const answer = `Head ${best.head + 1} of layer ${best.layer + 1} looks most sharply: at ${source}, with a share of ${best.share.toFixed(2)}.`;
  return question("decoder.layers.{layer}.cross_attn-weights", `Where does the model look when it writes ${quoted(found.written[step].text)}?`, answer, { layer: best.layer, head: best.head, step, token: best.column });
}

/** The share of a map that lies near the diagonal. */
function straightness(rows) {
  const near = (t, s) => Math.abs(t / Math.max(rows.length - 1, 1) - s / Math.max(rows[0].length - 1, 1)) <= 1.5 / Math.max(rows.length, rows[0].length);
  return sumOf(rows.map((row, t) => row.reduce((sum, one, s) => sum + (near(t, s) ? one : 0), 0))) / rows.length;
}

function askGrid({ ofLayers }) {
  const all = eachHead(ofLayers("decoder.layers.{layer}.cross_attn.weights")).map((one) => ({ ...one, share: straightness(one.rows) }));
  const best = all.reduce((a, b) => (b.share >= a.share ? b : a));
  const answer = `Head ${best.head + 1} of layer ${best.layer + 1} is nearest to a diagonal: ${share(best.share)} of its shares lie on it or beside it.`;
  return question("all-heads", "Which head follows the order of the words?", answer, { layer: best.layer, head: best.head });
}

/** The step at which the piece written was least probable, among those that the model was free to write. */
function leastSure({ steps, prefix, at_limit }) {
  const all = steps.map((_, t) => t), free = all.slice(prefix, steps.length - (at_limit ? 1 : 0));
  return (free.length ? free : all).reduce((a, b) => (steps[b].probability < steps[a].probability ? b : a));
}

function askUnsure({ found }) {
  const t = leastSure(found), step = found.steps[t], written = found.written[t].text;
  const others = step.candidates.map((one, i) => [step.logits[i], one.text]).filter(([, text]) => text !== written);
  const [logit, other] = others.reduce((a, b) => (b[0] > a[0] ? b : a)), probability = Math.exp(logit - step.log_normalisers[TEMPERATURES.indexOf(1)]);
  const answer = `At step ${t + 1}: ${quoted(written)} has a probability of ${step.probability.toFixed(3)}. The next one is ${quoted(other)}, with ${probability.toFixed(3)}.`;
  return question("probabilities", "At which step is the model least sure?", answer, { step: t });
}

function askEarly({ found }) {
  const t = leastSure(found), written = found.written[t].text, layers = found.steps[t].early;
  let first = layers.length;
  while (first && layers[first - 1][0][0] === written) first--;
  const answer = first < layers.length ? `stands first after layer ${first + 1} of ${layers.length}.` : "is not first after the last layer. The search took it all the same.";
  return question("early", "After which layer does it know what to write?", `At step ${t + 1}, ${quoted(written)} ${answer}`, { step: t });
}

function askChoice({ found }) {
  const { greedy, output, beam } = found, best = beam.hypotheses[0].text;
  const answer = !found.search.startsWith("beam") ? (best === greedy.text ? "No: beam search finds the same text." : `Yes: a beam finds ${quoted(best)}.`)
    : greedy.text === output.text ? "No: greedy search and the run's own search found the same text."
    : `Yes: greedy search wrote ${quoted(greedy.text)} (log-probability ${greedy.log_prob.toFixed(2)}), the run's own search ${quoted(output.text)} (${output.log_prob.toFixed(2)}).`;
  const cut = beam.extensions.filter((one) => one.fate === "cut").length;
  return question("choice", "Did it matter how the text was searched for?", `${answer} Beam search looked at ${beam.extensions.length} beginnings and cut ${cut} of them.`);
}

function askHead({ found }) {
  const least = found.heads_off.reduce((a, b) => (b.log_prob < a.log_prob ? b : a)), changed = found.heads_off.filter((one) => one.text !== found.greedy.text).length;
  const [stack, , layer, attention] = least.module.split("."), text = least.text ? quoted(least.text) : "nothing";
  const where = `head ${least.head + 1} of ${attention.replace("_attn", "-attention")} in layer ${Number(layer) + 1} of the ${stack}`;
  const answer = `Without ${where} the output's log-probability is ${least.log_prob.toFixed(2)}, and greedy search writes ${text}. ${changed} of ${found.heads_off.length} heads change the text.`;
  return question("heads-off", "Which head does this sentence need most?", answer, { layer: Number(layer), head: least.head });
}

function askSentence({ found, config }) {
  const last = `encoder.layers.${config.num_encoder_layers - 1}.feed_forward_residual`, hidden = rowsOfMap(found.arrays["encoder.norm"] ?? found.arrays[last]);
  const alike = hidden.map((row) => cosine(row, found.arrays["sentence.mean"].values)), nearest = largestPlace(alike), farthest = largestPlace(alike.map((one) => -one));
  const [near, far] = [nearest, farthest].map((i) => quoted(found.axes.src[i].text));
  const answer = `${near}: the cosine of its vector and the average is ${alike[nearest].toFixed(2)}; that of ${far} is ${alike[farthest].toFixed(2)}.`;
  return question("vector", "Which piece is most like the whole sentence?", answer, { token: nearest });
}
