"use strict";
/* The engine: a trained model of tfm in plain JavaScript. It translates, continues texts and compares sentences as tfm
 * does, in a page's worker or in node, with nothing but this file. Read in this order:
 *
 *   the packed model   bytes to a header, vocabularies and matrices
 *   text               cleaning, placeholders, sentences: data/cleaning.py, placeholders.py, sentences.py, facts.py
 *   vocabulary         text to pieces and back: what SentencePiece does
 *   model              the Transformer: seq2seq/model, with the keys and values of earlier positions kept
 *   searches           seq2seq/decoding: greedy, sampling, beam, and a beam under constraint
 *   machines           engine/translator.py, generator.py, embedder.py
 *   session            messages in, messages out: the same in a worker and in node
 *
 * A function has the name and the rules of its original in Python. Tests hold each of them to it.
 * Shapes as in seq2seq/model: S source positions, T target positions, D = d_model, H heads, V pieces, R rows.
 */

// --- the packed model ---

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%,()*+-;.=>?@^_`{|}~";

/** Base 85 to bytes, 5 characters being 4 bytes, of which the first 4 are the number of the others. */
function bytesOfBase85(text) {
  text = text.trim();
  const values = new Uint8Array(128), bytes = new DataView(new ArrayBuffer((text.length / 5) * 4));
  for (let i = 0; i < DIGITS.length; i++) values[DIGITS.charCodeAt(i)] = i;
  for (let at = 0, to = 0; at < text.length; to += 4) {
    let value = 0;
    for (const end = at + 5; at < end; at++) value = value * 85 + values[text.charCodeAt(at)];
    bytes.setUint32(to, value);
  }
  return new Uint8Array(bytes.buffer, 4, bytes.getUint32(0));
}

async function inflated(bytes) {
  const stream = new Response(bytes).body.pipeThrough(new DecompressionStream("gzip")); // a Blob's stream fails in WebKit
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** What pack.py packed: a header, and the bytes that it names. */
async function unpacked(compressed) {
  const bytes = await inflated(compressed);
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const start = 4 + length;
  const part = ({ offset, length }) => bytes.buffer.slice(start + offset, start + offset + length);
  const tensors = {};
  for (const [name, entry] of Object.entries(header.tensors)) tensors[name] = { shape: entry.shape, values: widened(entry, part) };
  for (const [name, other] of Object.entries(header.shared)) tensors[name] = tensors[other];
  const vocabularies = header.vocabularies.map((entry) => new Vocabulary(new Uint8Array(part(entry))));
  return { header, tensors, vocabularies };
}

/** A stored matrix in float32: of int8, each row has been divided by its scale. */
function widened(entry, part) {
  const stored = part(entry);
  if (entry.type === "float32") return new Float32Array(stored);
  if (entry.type === "float16") return Float32Array.from(new Uint16Array(stored), half);
  const [rows, columns] = entry.shape;
  const steps = new Int8Array(stored), scales = new Float32Array(part(entry.scales));
  const values = new Float32Array(steps.length);
  for (let row = 0, i = 0; row < rows; row++)
    for (const end = i + columns; i < end; i++) values[i] = steps[i] * scales[row];
  return values;
}

/** The number that 16 bits are: sign, 5 bits of exponent, 10 of fraction. */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The fields of a message of protocol buffers: [number, value], a value being a number or bytes. */
function* fieldsOf(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0, factor = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte & 128);
    return value;
  };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  while (at < bytes.length) {
    const key = varint(), number = Math.floor(key / 8);
    switch (key & 7) {
      case 0: yield [number, varint()]; break;
      case 1: yield [number, view.getFloat64(at, true)]; at += 8; break;
      case 2: {
        const length = varint();
        yield [number, bytes.subarray(at, at + length)];
        at += length;
        break;
      }
      case 5: yield [number, view.getFloat32(at, true)]; at += 4; break;
      default: throw new Error(`a vocabulary has a field of kind ${key & 7}`);
    }
  }
}

// --- text: cleaning ---

const TAGS = "\\u{e0020}-\\u{e007e}", END_OF_TAGS = "\\u{e007f}";
const EMOJI = "[\\u2600-\\u27bf\\u{1f000}-\\u{1faff}][\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?";
const INVISIBLE =
  "\\u00ad\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff" +
  `\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0001}${TAGS}${END_OF_TAGS}`;
const DROPPED = new RegExp(`(${EMOJI}[${TAGS}]+${END_OF_TAGS})|[${INVISIBLE}]`, "gu");

/** The cleaning that every line passes before SentencePiece: see `clean` in data/cleaning.py. */
function clean(text) {
  text = text.normalize("NFC").replace(DROPPED, (found, flag) => flag ?? "");
  text = text.replace(/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/gu, " ").replace(/\p{Cs}/gu, "\ufffd");
  return text.normalize("NFC").replace(/ +/g, " ").replace(/^ | $/g, ""); // a dropped one can bring letter and accent together
}

// --- text: placeholders ---

const SYMBOLS = Array.from({ length: 15 }, (_, i) => String.fromCharCode(0xfdd1 + i));
const SYMBOL = /[\ufdd1-\ufddf]/g;
const WORD = "[\\p{L}\\p{N}_]"; // what Python's `re` takes for a letter of a word
const IN_WORD = "\\p{L}\\p{N}_";
const BOOLEAN_ATTRIBUTES =
  "allowfullscreen|async|autofocus|autoplay|checked|controls|default|defer|disabled|hidden|loop|multiple|muted|nowrap" +
  "|open|readonly|required|reversed|selected";
const ATTRIBUTE = `[${IN_WORD}:@.\\-]+ *= *(?:"[^"]*"|'[^']*'|[^ "'<>=]+)|(?:${BOOLEAN_ATTRIBUTES})(?!${WORD})`;
const FOREIGN = // letters of addresses besides those of ASCII
  "\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u024f\\u0300-\\u037d\\u037f-\\u0386\\u0388-\\u0481\\u048a-\\u0556\\u0561-\\u0587" +
  "\\u05d0-\\u05ea\\u0620-\\u065f\\u066e-\\u06d3\\u0900-\\u0963\\u0966-\\u096f\\u0971-\\u0df3\\u10a0-\\u10fa\\u10fc-\\u10ff\\u1e00-\\u1fff";
const CONVERSION = "(?:hh|ll|I64|[hlqLjzt])?[diouxXeEfFgGcrsap@]";
const NAME = "[A-Za-z_][A-Za-z0-9_.\\-]*[A-Za-z0-9_]";
const FIELD =
  `\\{ ?(?:\\$(?=${WORD}))?[${IN_WORD}.\\[\\]\\-]*(?:![rsa])?(?::(?:[^\\{\\} ]*|[^\\{\\}]*%[^\\{\\}]*))?` +
  `(?:, ?${WORD}+(?:, ?[${IN_WORD}:/.#\\-]+)?)? ?\\}`;
const PATTERNS = {
  url: `(?:https?://|ftp://|www\\.)[!#-&\\(-;=?-_a-\\{\\}~${FOREIGN}]*[A-Za-z0-9/#=&_~%+${FOREIGN}\\-]`,
  email:
    `(?<![A-Za-z0-9.+_${FOREIGN}\\-])[A-Za-z0-9.+_${FOREIGN}\\-]{1,64}` +
    `@[A-Za-z0-9${FOREIGN}\\-]+(?:\\.[A-Za-z0-9${FOREIGN}\\-]+)+`,
  markup:
    `:[A-Za-z][${IN_WORD}.:+\\-]{0,50}:\`[^\`<>]+\`` +
    `|\`\`[^\`]+\`\`|(?<![${IN_WORD}\`])\`[^\` ]+\`(?![${IN_WORD}\`])|\\|${WORD}[${IN_WORD}.\\-]*\\|`,
  tag:
    "</?[0-9]{1,3}>|<[0-9]{1,3} ?/>" +
    `|</[A-Za-z][${IN_WORD}:.\\-]* *>|<!--.{0,500}?-->|<[A-Za-z][${IN_WORD}:.\\-]*(?: +(?:${ATTRIBUTE}))* */?>`,
  entity: `&(?:#\\p{Nd}+|#x[0-9A-Fa-f]+|[A-Za-z]${WORD}*);`,
  braces:
    "\\{\\\\[^\\{\\}]*\\}|\\{\\{[#/^>] ?[A-Za-z][^\\{\\}]{0,200}\\}\\}" +
    `|\\{\\{ ?[${IN_WORD}$.\\[\\]\\-]+(?: ?\\| ?${WORD}+(?:\\([^\\(\\)\\{\\}]*\\))?` +
    `(?: ?: ?(?:'[^'\\{\\}]*'|"[^"\\{\\}]*"|[${IN_WORD}.\\-]+))*)+ ?\\}\\}` +
    `|(?:\\$|(?<!\\p{Nd})%(?=\\{${WORD}))?(?:\\{${FIELD}\\}|${FIELD})`,
  printf:
    `%(?:\\p{Nd}+\\$)?#@${WORD}+@` +
    "|%(?:\\p{Nd}+\\$)?[\\-#0+']?(?:\\p{Nd}+|\\*)?(?:\\.(?:\\p{Nd}+|\\*))?<PRI[diouxX][A-Z0-9]+>" +
    `|(?<!\\p{Nd})%(?!${CONVERSION})${NAME}%` +
    `|(?<!\\p{Nd})%(?=${CONVERSION}[^%])${NAME}%(?![A-Za-z0-9_%])` +
    `|%\\([${IN_WORD}.]+\\)[\\-#0+]?\\p{Nd}*(?:\\.\\p{Nd}+)?[a-zA-Z]` +
    `|%%|%L?[1-9]\\p{Nd}?(?![\\p{Nd}$.%]|${WORD})|(?<!\\p{Nd})%n(?!${WORD})` +
    `|(?<!\\p{Nd})%(?:\\p{Nd}+\\$)?[\\-#0+']?(?:\\p{Nd}+|\\*)?(?:\\.(?:\\p{Nd}+|\\*))?${CONVERSION}` +
    `|(?<=\\p{Nd})%(?:\\p{Nd}+\\$)?[diouxXeEfFgGcrsap@](?!${WORD})` +
    "|\\[X\\p{Nd}+X\\]",
  escape: `\\\\[nrt"'\\\\]`,
};
const KINDS = Object.keys(PATTERNS);
const PLACEHOLDER = new RegExp(KINDS.map((kind) => `(?<${kind}>${PATTERNS[kind]})`).join("|"), "gu");
const HINT = /[%{<&`|\\@]|:\/\/|www\.|\[X/;

/** The placeholders of these kinds in a text, in order. */
function placeholders(text, kinds) {
  if (!HINT.test(text)) return [];
  const found = [...text.matchAll(PLACEHOLDER)];
  return found.filter((match) => kinds.some((kind) => match.groups[kind] !== undefined)).map((match) => match[0]);
}

const replacedPlaceholders = (text, by) => (by.size ? text.replace(PLACEHOLDER, (found) => by.get(found) ?? found) : text);

/** A text with a space, or what is given, in the place of each placeholder of these kinds. */
const withoutPlaceholders = (text, kinds, by = " ") => replacedPlaceholders(text, new Map(placeholders(text, kinds).map((value) => [value, by])));

/** Whether a text has letters besides its placeholders of these kinds. */
const hasWords = (text, kinds) => /\p{L}/u.test(withoutPlaceholders(text, kinds));

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let i = 0; i < 8; i++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});
function crc32(text) {
  let crc = -1;
  for (const byte of new TextEncoder().encode(text)) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ -1) >>> 0;
}

/** A count of equal things. */
function counter(things) {
  const counts = new Map();
  for (const one of things) counts.set(one, (counts.get(one) ?? 0) + 1);
  return counts;
}

/** What one count has more of than another, each as often as it does. */
function surplus(more, less) {
  return [...more].flatMap(([one, count]) => Array(Math.max(count - (less.get(one) ?? 0), 0)).fill(one));
}

/** A text with symbols in the places of its placeholders, and the value of each symbol. */
class Masked {
  constructor(text, kinds) {
    const values = kinds.length ? [...new Set(placeholders(text, kinds))] : [];
    const first = values.length ? crc32(text) % SYMBOLS.length : 0;
    const order = [...SYMBOLS.slice(first), ...SYMBOLS.slice(0, first)];
    this.values = new Map(values.slice(0, order.length).map((value, i) => [order[i], value]));
    this.text = replacedPlaceholders(text, new Map([...this.values].map(([symbol, value]) => [value, symbol])));
  }

  /** Puts the placeholders back. One that touches no letter in the source touches none here. */
  unmask(text, letter) {
    if (!/[\ufdd1-\ufddf]/.test(text)) return text;
    text = text.replace(SYMBOL, (symbol) => (this.values.has(symbol) ? symbol : ""));
    for (const symbol of this.values.keys())
      for (const place of [`(?<=${letter})(?=${symbol})`, `(?<=${symbol})(?=${letter})`])
        if (!new RegExp(place, "u").test(this.text)) text = text.replace(new RegExp(place, "gu"), " ");
    const found = counter([...text].filter((one) => this.values.has(one)).map((one) => this.values.get(one)));
    if (surplus(found, counter(placeholders(this.putBack(text), KINDS))).length)
      text = text.replace(SYMBOL, " $& ").replace(/ +/g, " ").trim(); // one would run together with what is beside it
    return this.putBack(text);
  }

  putBack(text) {
    return text.replace(SYMBOL, (symbol) => this.values.get(symbol) ?? symbol);
  }
}

// --- text: sentences ---

const SIGN = "\\p{Sentence_Terminal}\\u0f0d-\\u0f12\\u17d4\\u17d5\\u17d9\\u17da";
const END = `(?:(?!၊)[${SIGN}…]|(?<=\\p{Script=Greek})[;\\u037e]|(?<=\\p{Script=Armenian}):|፡፡)`;
const ALSO_INSIDE = "[.!?…․‼‽⁇⁈⁉;:\\u037e]";
const MARK = "[\\p{M}\\u200d]";
const REGEX_WORD = "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u200c\\u200d]"; // what Python's library `regex` takes for one
const MORE = `\\s*${END}(?:(?<!${ALSO_INSIDE})|(?!${REGEX_WORD}))|${MARK}|[\\p{Pe}\\p{Pf}]`;
/** What matches is not given back, as with Python's `++`: a look-ahead is not tried again. */
const kept = (pattern, group) => `(?=(${pattern}))\\${group}`;
const SPACED_END =
  END + kept(`(?:${MORE}|['\\p{Pi}]|\\s+[\\p{Pe}\\p{Pf}](?=\\s|$)){0,8}`, 1) + kept("\\s+", 2);
const UNSPACED_END =
  `${END}(?<!${ALSO_INSIDE})(?:(?<!\\p{Nd}.)|(?!\\p{Nd}))` +
  kept(`(?:${MORE}){0,8}`, 3) + "(?![\\p{Pe}\\p{Pf}])" + kept("\\s*", 4);
const TITLES =
  "Mr|Mrs|Ms|Mx|Dr|Drs|Prof|St|Rev|Hon|Gen|Col|Capt|Lt|Sgt|Gov|Sen|Messrs|Mme|Mlle|Mgr|Hr|Fr|Frl|Ing|Dipl|Sr|Sra|Srta" +
  "|Dña|Lic|Arq|Exmo|Sig|Dott|Avv|Dhr|Mevr|Doç|Sdr|Bpk|Ca|Bzw|Vgl|Cf|Vs|Им|Ул|Просп|Проф|Акад|Доц|Св|Ред|Вул|Ім|Δρ|Καθ";
const NUMBERED = "No|Nr|Nos|Núm|Art|Fig|Abb|Abs|Bd|Kap|Cap|Ch|Sec|Eq|Vol|Pp|Str|Pág|Blz|Örn|Стр|Рис|Табл|Гл|См|Разд|Σελ|Αρ";
const eitherCase = (words) => words.replace(/(^|\|)(.)/gu, (_, bar, one) => `${bar}[${one}${one.toLowerCase()}]`);
const CASED = "[\\p{Lu}\\p{Ll}]\\p{M}*", BEFORE_WORD = "(?<![\\p{L}\\p{M}\\p{N}])";
const ABBREVIATION =
  `\\.(?<=${BEFORE_WORD}(?:\\p{Nd}{1,2}|(?:${CASED}\\.){0,4}${CASED}|${eitherCase(TITLES)})\\.)\\s` +
  `|\\.(?<=${BEFORE_WORD}(?:${eitherCase(NUMBERED)})\\.)\\s+\\p{Nd}`;
const SMALL_LETTER =
  "(?<=[.!?…][^\\p{L}\\p{N}]{1,20})[\\p{Ps}\\p{Pi}'’¿¡\\-]*(?!\\p{Script=Georgian})\\p{Ll}";
const THAI = "[\\p{Script=Thai}\\p{Script=Lao}]", NO_END = "[\\p{Nd}\\p{Lm}ฯ]";
const POSSIBLE_END = new RegExp(
  `(?:${SPACED_END}|${UNSPACED_END}|(?<=${THAI})(?<!${NO_END})${kept("\\s+", 5)}(?=${THAI})(?!${NO_END}))(?!${MARK})`, "gu");
const UNCASED_END = new RegExp(`(?:(?!${ABBREVIATION})${SPACED_END}|${UNSPACED_END})(?!${MARK})`, "gu");
const CASED_END = new RegExp(`(?:(?!${ABBREVIATION})${SPACED_END}|${UNSPACED_END})(?!${MARK}|${SMALL_LETTER})`, "gu");
const SCRIPTS = ["Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Tai_Tham"];
const UNSPACED = "[" + SCRIPTS.map((script) => `\\p{Script_Extensions=${script}}`).join("") + "\\uff01-\\uff9f]";
const UNSPACED_LAST = new RegExp(`${UNSPACED}[\\p{Pe}\\p{Pf}\\p{Pi}\\p{Pd}\\p{Nd}\\p{M}\\u200d"'…]*$`, "u");
const UNSPACED_FIRST = new RegExp(`^[\\p{Ps}\\p{Pf}\\p{Pi}\\p{Pd}\\p{Nd}"'…]*${UNSPACED}`, "u");
const SPACED_AFTER = new RegExp(
  `(?=[${SIGN}])[${["Khmer", "Myanmar", "Tibetan", "Tai_Tham"].map((script) => `\\p{Script=${script}}`).join("")}]` +
  "[\\p{Pe}\\p{Pf}\\p{Pi}\\p{M}\\u200d\"']*$", "u");
const SPACED_SENTENCES = new RegExp(`${THAI}[\\p{Pe}\\p{Pf}\\p{Pi}\\p{M}\\u200d"'…]*$`, "u");
const DIVIDED = 0.1;
const REACH = 50;

/** Splits a text into as few parts of at most `most` pieces as its sentence ends allow: [parts, was one cut inside]. */
function splitText(text, count, most, isBetweenWords) {
  const fits = (part) => count(part.trim()) <= most;
  const parts = [];
  let cut = false;
  for (const part of sentencesOf(text).flatMap((one) => (fits(one) ? [one] : sentencesOf(one, true)))) {
    if (parts.length && fits(parts.at(-1) + part)) parts.push(parts.pop() + part);
    else if (fits(part)) parts.push(part);
    else {
      cut = true;
      parts.push(...cutSentence([...part], (slice) => fits(slice.join("")), isBetweenWords).map((slice) => slice.join("")));
    }
  }
  const trimmed = parts.map((part) => part.trim()).filter(Boolean);
  return [trimmed.length ? trimmed : [text], cut];
}

/** Slices that together are the text; `possible`: cut wherever a sentence may end. */
function sentencesOf(text, possible = false) {
  let opens = false;
  const directed = text.replace(/"/g, () => ((opens = !opens), opens ? "“" : "”"));
  const end = possible ? POSSIBLE_END : /\p{Lu}/u.test(text) ? CASED_END : UNCASED_END;
  const ends = [...directed.matchAll(end)].map((match) => match.index + match[0].length);
  return [0, ...ends].map((start, i) => text.slice(start, ends[i])).filter(Boolean);
}

/** Halves a sentence, a list of characters, until the slices fit. */
function cutSentence(sentence, fits, isBetweenWords) {
  if (fits(sentence) || sentence.length < 2) return [sentence];
  const place = nearTheMiddle(sentence, isBetweenWords);
  return [sentence.slice(0, place), sentence.slice(place)].flatMap((half) => cutSentence(half, fits, isBetweenWords));
}

/** At the space nearest the middle; without one after a sign, between words, or between characters. */
function nearTheMiddle(sentence, isBetweenWords) {
  const middle = Math.floor(sentence.length / 2), isMark = (one) => one !== undefined && new RegExp(`^${MARK}`, "u").test(one);
  const distance = (place) => Math.abs(place - middle);
  const least = (places, ...orders) =>
    places.reduce((a, b) => (orders.map((of) => of(b) - of(a)).find((difference) => difference) < 0 ? b : a));
  const spaces = sentence.flatMap((one, i) => (i && one === " " && !isMark(sentence[i + 1]) ? [i] : []));
  if (spaces.length) return least(spaces, distance);
  const characterEnds = (first, last) => {
    const start = Math.max(first - 1, 0), ends = [];
    let at = start;
    for (const { segment } of new Intl.Segmenter("und").segment(sentence.slice(start, last + 1).join(""))) {
      at += [...segment].length;
      if (first <= at && at <= last && at < sentence.length && !(at <= last && isMark(sentence[at]))) ends.push(at);
    }
    return ends;
  };
  const rough = (place) => roughness(sentence, place, isBetweenWords);
  for (const reach of [Math.min(REACH, Math.floor(sentence.length / 4)), Math.min(REACH, middle - 1)]) {
    const near = characterEnds(middle - reach, middle + reach), best = near.length ? least(near, rough, distance) : 0;
    if (best && rough(best) < 2) return best;
  }
  const all = characterEnds(0, sentence.length);
  return least(all.length ? all : sentence.slice(1).map((_, i) => i + 1), distance);
}

/** 0 after a sign, 1 between words, 2 inside a word. */
function roughness(sentence, place, isBetweenWords) {
  const [before, after] = [sentence[place - 1], sentence[place]];
  if (/\p{P}/u.test(before) && !/[\p{Ps}\p{Pi}]/u.test(before) && !/\p{P}/u.test(after)) return 0;
  return isBetweenWords(sentence, place) ? 1 : 2;
}

/** Joins the parts of a text as its script does: with a space, or without one. */
function joinTexts(texts) {
  const parts = texts.filter(Boolean);
  const characters = [...parts.join("")];
  const isDivided = characters.filter((one) => one === " ").length > DIVIDED * characters.length;
  return parts.reduce((joined, after, i) => {
    if (!i) return after;
    const before = parts[i - 1], isSpaced = SPACED_AFTER.test(before) || SPACED_SENTENCES.test(before);
    const isUnspaced = !isDivided && !isSpaced && UNSPACED_LAST.test(before) && UNSPACED_FIRST.test(after);
    return joined + (isUnspaced ? "" : " ") + after;
  }, "");
}

// --- text: the usual form ---

const USUAL_WORD = /[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}'’]*/gu;
const SMALL_WORD_START = /(?<![\p{L}\p{M}\p{N}'’])(?!\p{Script=Georgian})\p{Ll}/gu;
const ALSO = [["SS", "ß"], ["I", "ı"]];
const WORDS_OF_A_TITLE = 3, LETTERS_OF_A_WORD = 5;
const isCased = (text) => text.toLowerCase() !== text.toUpperCase();
const isUpper = (text) => /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
const isLower = (text) => /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
const isOpen = (text) => /[\p{L}\p{M}\p{N}]$/u.test(text);
const asItIs = (text) => text;
const openEnded = (text) => text.replace(/\s*\p{Sentence_Terminal}+$/u, "") || text;
const capitalOf = (letter, isTurkish) => (isTurkish && letter === "i" ? "İ" : letter.toUpperCase());
const titled = (text, isTurkish) => text.replace(SMALL_WORD_START, (one) => capitalOf(one, isTurkish));
const capitals = (text, isTurkish) => text.replace(/(?!\p{Script=Georgian})\p{Ll}/gu, (one) => capitalOf(one, isTurkish));
const isPicture = (one) => /[\p{So}\u{1f3fb}-\u{1f3ff}]/u.test(one) && !"°©®™№℗℠".includes(one);

/** Whether a text is in "capitals", a "title" or in "small letters"; else null. */
function styleOf(text) {
  const words = text.split(" ").filter(isCased);
  if (!words.some((word) => [...word].length > 1)) return null;
  if ([...text].some((one) => /\p{L}/u.test(one) && !isCased(one))) return null;
  if (words.every(isUpper)) return words.length > 1 || [...words[0]].length >= LETTERS_OF_A_WORD ? "capitals" : null;
  if (words.every(isLower)) return "small letters";
  return words.length >= WORDS_OF_A_TITLE && words.every((word) => !isLower([...word].find(isCased))) ? "title" : null;
}

/** How a model reads a masked text: what it reads, what gives its output the form of the text, and what is left out. */
function inUsualForm(text, vocabulary, facts) {
  const [begin, middle, end] = unknownEnds(text, vocabulary.characters);
  const [styled, restyle] = inUsualLetters(middle, vocabulary, facts), isOpened = facts.last_sign && isOpen(middle);
  const restore = isOpened ? (output) => openEnded(restyle(output)) : restyle;
  return [withoutSlips(styled, vocabulary) + (isOpened ? facts.last_sign : ""), (output) => begin + restore(output) + end, [begin, end]];
}

const LONG_WORD = /(?<![\p{L}\p{M}\p{N}_'’.:#@&$%/\\=<{~+])\p{L}{5,40}(?![\p{L}\p{M}\p{N}_'’(@/\\=>}]|[.:][\p{L}\p{N}])/gu;
const PIECES_OF_A_SLIP = 3;

/** A text whose words with a slip of typing are the words that are meant: see data/slips.py. */
function withoutSlips(text, vocabulary) {
  if (text.split(" ").length < 3) return text;
  const spans = spansOfPlaceholders(text), isInside = (place) => spans.some(([first, end]) => first <= place && place < end);
  return text.replace(LONG_WORD, (word, place) => (isInside(place) ? word : vocabulary.meant(word)));
}

function triplesOf(word) {
  const letters = [" ", ...word.toLowerCase(), " "];
  return letters.slice(2).map((last, at) => letters[at] + letters[at + 1] + last);
}

const spansOfPlaceholders = (text) =>
  HINT.test(text) ? [...text.matchAll(PLACEHOLDER)].map(({ index, 0: found }) => [index, index + found.length]) : [];

/** A text in three: words and signs at its ends of which nothing is known, and what is between them. */
function unknownEnds(text, known) {
  const isKnown = (one) => known.has(one) || SYMBOLS.includes(one) || known.has(one.toLowerCase()) || known.has(one.toUpperCase());
  const isLetterOrDigit = (one) => /[\p{L}\p{N}]/u.test(one), characters = [...text];
  const isStrange = (one) => !isKnown(one) && (isLetterOrDigit(one) || isPicture(one));
  if (!characters.some(isStrange) || !/\p{L}/u.test(text)) return ["", text, ""];
  const isKept = (word) => !word.some(isStrange) || word.some((one) => isKnown(one) && (isLetterOrDigit(one) || SYMBOLS.includes(one)));
  let [start, stop, at] = [0, 0, 0], isAny = false;
  for (const word of text.split(" ").map((one) => [...one])) {
    if (word.length && isKept(word)) [start, stop, isAny] = [isAny ? start : at, at + word.length, true];
    at += word.length + 1;
  }
  while (start < stop && isStrange(characters[start]) && !isLetterOrDigit(characters[start])) start += 1;
  for (let last = stop - 1; last >= start && characters[last] !== " " && !isKnown(characters[last]) && !isLetterOrDigit(characters[last]); last--)
    if (isStrange(characters[last])) stop = last;
  if (!characters.slice(start, stop).some((one) => /\p{L}/u.test(one) && isKnown(one))) return [text, "", ""];
  return [characters.slice(0, start), characters.slice(start, stop), characters.slice(stop)].map((part) => part.join(""));
}

function inUsualLetters(text, vocabulary, facts) {
  const style = styleOf(text);
  if (style === null || !facts.unusual_styles.includes(style)) return [text, asItIs];
  const spans = spansOfPlaceholders(text);
  const words = [...text.matchAll(USUAL_WORD)].filter(({ index }) => !spans.some(([first, end]) => first <= index && index < end));
  const first = facts.begins_with_capitals ? firstWords(text, words) : new Set();
  let [usual, done, changed] = ["", 0, 0];
  for (const { index, 0: found } of words) {
    const letters = [...found], isChanged = style !== "title" || letters.length === 1 || isLower(letters.slice(1).join(""));
    const word = !/\p{Nd}/u.test(found) && isChanged ? usualWord(found, vocabulary, first.has(index)) : found;
    usual += text.slice(done, index) + word;
    done = index + found.length;
    changed += word !== found;
  }
  if (!changed || (style === "title" && (changed < 2 || 2 * changed < words.length - 1))) return [text, asItIs];
  const form = facts.kept_styles.includes(style) && { capitals, title: titled }[style];
  return [usual + text.slice(done), form ? (output) => form(output, facts.is_turkish) : asItIs];
}

/** Where the first of the words of each sentence begins. */
function firstWords(text, words) {
  const found = new Set();
  let begin = 0;
  for (const sentence of sentencesOf(text)) {
    const word = words.find(({ index }) => begin <= index && index < begin + sentence.length);
    if (word) found.add(word.index);
    begin += sentence.length;
  }
  return found;
}

/** The spelling of a word that its vocabulary has in the fewest pieces; of several such ones the most frequent. */
function usualWord(word, vocabulary, beginsSentence) {
  const compared = (one, other) => one.map((value, i) => value - other[i]).find((difference) => difference) ?? 0;
  const cheapest = (choices) => choices.reduce((best, one) => (compared(vocabulary.cost(one), vocabulary.cost(best)) < 0 ? one : best));
  const also = ALSO.filter(([from, to]) => word.includes(from) && vocabulary.characters.has(to));
  const spellings = [word, ...also.map(([from, to]) => word.replaceAll(from, to))];
  const small = cheapest(spellings.map((one) => one.replaceAll("İ", "i").toLowerCase()));
  const [initial] = small, capital = initial.toUpperCase() + small.slice(initial.length);
  const turkish = initial === "i" && vocabulary.characters.has("İ") ? ["İ" + small.slice(1)] : [];
  const choices = [small, capital, word, word.toUpperCase(), ...turkish].filter((one) => !beginsSentence || one !== small);
  return choices.length ? cheapest(choices) : small;
}

// --- text: repetition and numbers ---

const REPEATED = [/(.{1,3}?)\1{2,}/gsu, /(.{4,100}?)\1{2,}/gsu];
const WIDE = /[\u2e80-\ud7ff\uf900-\ufaff\u{20000}-\u{3ffff}]/gu;
const NUMBER = /\p{Nd}{1,3}(?:['’\u00a0\u2009\u202f ]\p{Nd}{3})+(?!\p{Nd})(?:[.,٫]\p{Nd}+)?|\p{Nd}+(?:[.,:٫٬．，：]\p{Nd}+)*/gu;
const HAN = ["〇零", "一", "二两兩", ..."三四五六七八九十"];

/** Letters and digits of a text, a wide character counted as three. */
const countLetters = (text) => (text.match(/[\p{L}\p{N}]/gu) ?? []).length + 2 * (text.match(WIDE) ?? []).length;

/** The longest run of repetitions: how many times a text says the same in a row. */
function mostRepeated(text) {
  const runs = REPEATED.flatMap((pattern) => [...`${text} `.matchAll(pattern)]);
  return Math.max(0, ...runs.filter((run) => countLetters(run[0]) >= 12).map((run) => run[0].length / run[1].length));
}

/** How often a text says the three words in a row that it says most often. */
function mostFrequent(text) {
  const words = text.split(" ").filter(Boolean);
  return Math.max(0, ...counter(words.slice(2).map((_, i) => words.slice(i, i + 3).join(" "))).values());
}

/** Whether a text repeats itself more often than its source does. */
function isLoop(text, source, limit) {
  const times = mostRepeated(text), again = mostFrequent(text);
  if (times >= 3 && times > mostRepeated(source)) return true;
  return (again > mostFrequent(source) ? again : 0) >= limit;
}

/** A number in ASCII digits; `zeros` are the code points of 0 in all scripts. */
function normalNumber(number, zeros) {
  const ascii = [...number].map((one) => decimal(one, zeros)).join("");
  const groups = ascii.split(/([^0-9])/), signs = groups.filter((_, i) => i % 2);
  const last = signs.at(-1) ?? "", others = signs.slice(0, -1);
  const isPoint = last && !others.includes(last) && groups.at(-1).length !== 3;
  return groups.slice(0, -1).filter((_, i) => i % 2 === 0).join("") + (isPoint ? "." : "") + groups.at(-1);
}

function decimal(character, zeros) {
  const code = character.codePointAt(0), zero = zeros.findLast((one) => one <= code);
  return zero !== undefined && code - zero < 10 ? String(code - zero) : character;
}

/** The numbers outside placeholders of these kinds that a translation has lost. */
function lostNumbers(source, translation, zeros, kinds) {
  const spelt = [source, translation].map((text) => withoutPlaceholders(text, kinds, "\n").match(NUMBER) ?? []);
  const [src, tgt] = spelt.map((numbers) => counter(numbers.map((one) => normalNumber(one, zeros))));
  const inWords = (more, other) => {
    const said = HAN.map((signs, value) => [String(value), [...signs].reduce((sum, sign) => sum + other.split(sign).length - 1, 0)]);
    return surplus(counter(more), new Map(said));
  };
  const lost = inWords(surplus(src, tgt), translation), added = inWords(surplus(tgt, src), source);
  const digits = (left, all) => {
    const counts = counter(left);
    const found = all.toReversed().filter((one) => {
      const key = normalNumber(one, zeros), there = counts.get(key) ?? 0;
      counts.set(key, there - 1);
      return there > 0;
    });
    return [...found.join("")].map((one) => decimal(one, zeros)).filter((one) => /\d/.test(one)).sort().join("");
  };
  const isDivided = lost.length !== added.length && digits(lost, spelt[0]) === digits(added, spelt[1]);
  return isDivided ? [] : lost;
}

// --- vocabulary ---

const PAD = 0, UNK = 1, BOS = 2, EOS = 3;
const FIRST_PLACEHOLDER = 5, LAST_PLACEHOLDER = 19;
const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, BYTE = 6;
const SPACE_MARK = "\u2581", ESCAPE = "\ue000";
const UNKNOWN_PENALTY = 10;
const SMALLEST_FLOAT = 2 ** -126;
const escaped = (text) => text.replaceAll(ESCAPE, ESCAPE + "a").replaceAll(SPACE_MARK, ESCAPE + "b");
const unescaped = (text) => text.replaceAll(ESCAPE + "b", SPACE_MARK).replaceAll(ESCAPE + "a", ESCAPE);
const isSymbolId = (id) => id >= FIRST_PLACEHOLDER && id <= LAST_PLACEHOLDER;

/** Strings by their characters: the longest, or all, that begin at a place. A node is { id, next: Map }. */
class Trie {
  constructor() {
    this.root = { id: -1, next: new Map() };
  }

  add(characters, id) {
    let node = this.root;
    for (const one of characters) {
      const code = one.codePointAt(0);
      if (!node.next.has(code)) node.next.set(code, { id: -1, next: new Map() });
      node = node.next.get(code);
    }
    node.id = id;
  }

  /** How many code points the longest string at a place has; 0 if there is none. */
  longest(codes, start) {
    let longest = 0;
    for (let at = start, node = this.root; at < codes.length; ) {
      node = node.next.get(codes[at++]);
      if (!node) break;
      if (node.id >= 0) longest = at - start;
    }
    return longest;
  }
}

/** One SentencePiece model, from its file. */
class Vocabulary {
  constructor(bytes) {
    const text = new TextDecoder();
    Object.assign(this, { pieces: [], scores: [], types: [], kind: 1, byteFallback: false, unknownSurface: " \u2047 " });
    this.addsSpace = true;
    for (const [number, value] of fieldsOf(bytes)) {
      if (number === 1) this.addPiece(Object.fromEntries(fieldsOf(value)), text);
      if (number === 2) {
        const trainer = Object.fromEntries(fieldsOf(value));
        this.kind = trainer[3] ?? 1;
        this.byteFallback = Boolean(trainer[35]);
        if (trainer[44]) this.unknownSurface = text.decode(trainer[44]);
      }
      if (number === 3) this.addsSpace = Boolean(Object.fromEntries(fieldsOf(value))[3] ?? 1);
    }
    this.index();
  }

  addPiece(fields, text) {
    this.pieces.push(text.decode(fields[1]));
    this.scores.push(fields[2] ?? 0);
    this.types.push(fields[3] ?? NORMAL);
  }

  index() {
    [this.ids, this.trie, this.symbols, this.bytes] = [new Map(), new Trie(), new Trie(), []];
    let [least, most] = [Infinity, SMALLEST_FLOAT];
    this.pieces.forEach((piece, id) => {
      const type = this.types[id];
      this.ids.set(piece, id);
      if (type === NORMAL || type === USER_DEFINED) this.trie.add(piece, id);
      if (type === USER_DEFINED) this.symbols.add(piece, id);
      if (type === BYTE) this.bytes[parseInt(piece.slice(1, -1), 16)] = id;
      if (type === NORMAL) [least, most] = [Math.min(least, this.scores[id]), Math.max(most, this.scores[id])];
    });
    const words = this.pieces.filter((piece, id) => this.types[id] === NORMAL && /^\u2581\p{L}+$/u.test(piece));
    this.words = new Set(words.map((piece) => piece.slice(1)));
    this.letters = [...new Set([...this.words].join(""))];
    this.triples = new Set([...this.words].flatMap(triplesOf));
    this.unknownScore = Math.fround(Math.fround(least) - UNKNOWN_PENALTY);
    this.largestScore = most;
  }

  /** Ids of a text, without bos and eos. */
  encode(text) {
    const cleaned = escaped(clean(text));
    if (!cleaned) return [];
    const normal = ((this.addsSpace ? " " : "") + cleaned).replaceAll(" ", SPACE_MARK);
    const ids = [];
    let wasUnknown = false;
    for (const [piece, id] of this.cut(normal)) {
      if (id === UNK && this.byteFallback) for (const byte of new TextEncoder().encode(piece)) ids.push(this.bytes[byte]);
      else if (!(id === UNK && wasUnknown)) ids.push(id); // neighbours that are not known are one piece
      wasUnknown = id === UNK;
    }
    return ids;
  }

  /** What a text takes: pieces of unknown characters, pieces in all, and of equally many the rarer ones. */
  cost(text) {
    const ids = this.encode(text);
    return [ids.filter((id) => id === UNK || this.types[id] === BYTE).length, ids.length, -ids.reduce((sum, id) => sum + this.scores[id], 0)];
  }

  /** The one word that a slip has made of this one; the word itself where there is none, or several. */
  meant(word) {
    const { words, letters } = this, characters = [...word];
    if (words.has(word) || !isLower(characters.slice(1).join(""))) return word;
    const ids = this.encode(word);
    if (ids.length < PIECES_OF_A_SLIP && !(ids.length === 1 && ids[0] === UNK)) return word;
    if (triplesOf(word).every((one) => this.triples.has(one))) return word;
    const spliced = (at, removed, ...added) => [...characters.slice(0, at), ...added, ...characters.slice(at + removed)].join("");
    const made = characters.slice(1).flatMap((letter, before) => {
      const at = before + 1, last = characters[before];
      const exchanged = before ? [spliced(before, 2, letter, last)] : [], doubled = letter === last ? [spliced(at, 1)] : [];
      return [...exchanged, ...doubled, ...letters.map((one) => spliced(at, 0, one))];
    });
    const meant = new Set(made.filter((one) => words.has(one)));
    return meant.size === 1 ? [...meant][0] : word;
  }

  /** The pieces of a text in which spaces are marks: [string, id] each. */
  cut(text) {
    if (this.kind === 1) return this.likeliestPieces(text);
    if (this.kind === 2) return this.mergedPieces(text);
    const units = this.kind === 3 ? text.split(/(?=\u2581)/) : this.units(text).map((unit) => unit.piece);
    return units.map((unit) => [unit, this.idOf(unit)]);
  }

  idOf(piece) {
    return this.ids.get(piece) ?? UNK;
  }

  /** Characters, and symbols that are never cut. */
  units(text) {
    const characters = [...text], codes = characters.map((one) => one.codePointAt(0)), units = [];
    for (let at = 0; at < codes.length; ) {
      const length = this.symbols.longest(codes, at);
      units.push({ piece: characters.slice(at, at + (length || 1)).join(""), frozen: length > 0 });
      at += length || 1;
    }
    return units;
  }

  /** A unigram model: the pieces whose scores have the largest sum, by Viterbi's algorithm. */
  likeliestPieces(text) {
    const characters = [...text], codes = characters.map((one) => one.codePointAt(0)), size = codes.length;
    const best = new Float32Array(size + 1); // as SentencePiece, which rounds each sum: equal ones are decided by it
    const start = new Int32Array(size + 1).fill(-1), ids = new Int32Array(size + 1);
    const offer = (end, from, id, score) => {
      const sum = Math.fround(best[from] + score);
      if (start[end] >= 0 && !(sum > best[end])) return;
      best[end] = sum;
      start[end] = from;
      ids[end] = id;
    };
    for (let from = 0; from < size; from++) {
      let isCovered = false;
      for (let at = from, node = this.trie.root, bytes = 0; at < size; ) {
        const code = codes[at++];
        node = node.next.get(code);
        if (!node) break;
        bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        const { id } = node;
        if (id < 0) continue;
        const isSymbol = this.types[id] === USER_DEFINED; // always chosen
        offer(at, from, id, isSymbol ? bytes * this.largestScore - 0.1 : this.scores[id]);
        if (at === from + 1) isCovered = true;
      }
      if (!isCovered) offer(from + 1, from, UNK, this.unknownScore);
    }
    const found = [];
    for (let end = size; end > 0; end = start[end]) found.push([characters.slice(start[end], end).join(""), ids[end]]);
    return found.reverse();
  }

  /** A BPE model: neighbours are merged, the pair with the largest score first, among equal ones the leftmost. */
  mergedPieces(text) {
    const units = this.units(text).map((unit, i, all) => ({ ...unit, before: i - 1, after: i + 1 < all.length ? i + 1 : -1 }));
    const agenda = new Heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
    const consider = (left, right) => {
      if (left < 0 || right < 0 || units[left].frozen || units[right].frozen) return;
      const piece = units[left].piece + units[right].piece, id = this.ids.get(piece);
      if (this.types[id] === NORMAL || this.types[id] === USER_DEFINED) agenda.push({ left, right, score: this.scores[id], piece });
    };
    for (let i = 1; i < units.length; i++) consider(i - 1, i);
    for (let top; (top = agenda.pop()); ) {
      const [left, right] = [units[top.left], units[top.right]];
      if (!left.piece || !right.piece || left.piece.length + right.piece.length !== top.piece.length) continue;
      left.piece += right.piece;
      right.piece = "";
      left.after = right.after;
      if (right.after >= 0) units[right.after].before = top.left;
      consider(left.before, top.left);
      consider(top.left, left.after);
    }
    return units.filter((unit) => unit.piece).map((unit) => [unit.piece, this.idOf(unit.piece)]);
  }

  /** Text of ids; control pieces vanish, unknown pieces become `⁇`. */
  decode(ids) {
    let text = "", bytes = [], beginsWithSpace = true;
    const flush = () => {
      text += utf8(bytes);
      bytes = [];
    };
    for (const id of ids) {
      if (this.types[id] === BYTE) {
        bytes.push(parseInt(this.pieces[id].slice(1, -1), 16));
        continue;
      }
      flush();
      if (text) beginsWithSpace = false;
      if (this.types[id] === CONTROL) continue;
      let piece = this.types[id] === UNKNOWN ? this.unknownSurface : this.pieces[id];
      if (beginsWithSpace && this.addsSpace && this.types[id] !== UNKNOWN && piece.startsWith(SPACE_MARK)) {
        piece = piece.slice(1);
        beginsWithSpace = false;
      }
      text += this.types[id] === UNKNOWN ? piece : piece.replaceAll(SPACE_MARK, " ");
    }
    flush();
    return unescaped(text).replace(/^ +| +$/g, "");
  }

  /** The pieces of text, without the mark of a space. */
  get texts() {
    const inText = this.pieces.filter((_, id) => id > LAST_PLACEHOLDER && this.types[id] !== BYTE);
    return (this.knownTexts ??= new Set(inText.map((piece) => unescaped(piece.replace(/^\u2581/, "")))));
  }

  /** All that are in pieces of text. */
  get characters() {
    return (this.knownCharacters ??= new Set([...this.texts].flatMap((one) => [...one])));
  }

  /** What of a cleaned, masked source is not known, each once, and the share of the characters that it is. */
  unknown(text) {
    const isWord = this.kind === 3;
    const units = isWord ? text.split(" ").filter(Boolean) : [...text.replaceAll(" ", "")];
    const known = isWord ? this.texts : this.characters;
    const missing = units.filter((unit) => !known.has(unit) && !SYMBOLS.includes(unit));
    const length = (all) => all.reduce((sum, unit) => sum + [...unit].length, 0);
    return { unknown: [...new Set(missing)], share: length(missing) / Math.max(length(units), 1) };
  }
}

/** Bytes as text. Each byte that begins no character is one replacement character. */
function utf8(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at];
    const length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) === 0xe0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    const rest = bytes.slice(at + 1, at + length);
    let code = length > 1 ? first & (0xff >> (length + 1)) : first;
    for (const byte of rest) code = (code << 6) | (byte & 63);
    const isWhole = length && rest.length === length - 1 && rest.every((byte) => (byte & 0xc0) === 0x80);
    const isValid = isWhole && code >= [0, 0, 0x80, 0x800, 0x10000][length] && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    text += isValid ? String.fromCodePoint(code) : "\ufffd";
    at += isValid ? length : 1;
  }
  return text;
}

/** A priority queue. */
class Heap {
  constructor(isBefore) {
    [this.isBefore, this.items] = [isBefore, []];
  }

  push(item) {
    const { items, isBefore } = this;
    let at = items.push(item) - 1;
    for (let up; at > 0 && isBefore(item, items[(up = (at - 1) >> 1)]); at = up) items[at] = items[up];
    items[at] = item;
  }

  pop() {
    const { items, isBefore } = this, top = items[0], last = items.pop();
    if (!items.length) return top;
    let at = 0;
    for (let child; (child = 2 * at + 1) < items.length; at = child) {
      if (child + 1 < items.length && isBefore(items[child + 1], items[child])) child++;
      if (!isBefore(items[child], last)) break;
      items[at] = items[child];
    }
    items[at] = last;
    return top;
  }
}

// --- model: arithmetic ---

/** x W^T + b for rows of x; a layer is { weight (outputs, inputs), bias, outputs, inputs, at }. */
function linear(layer, x, rows) {
  const { weight, bias, outputs, inputs, at } = layer, y = new Float32Array(rows * outputs);
  if (at) at.multiplier.multiply(y, x, rows, at.offset, layer);
  else for (let row = 0; row < rows; row++) product(y.subarray(row * outputs), x.subarray(row * inputs, (row + 1) * inputs), weight, 0, outputs, inputs);
  if (bias) for (let row = 0, i = 0; row < rows; row++) for (let n = 0; n < outputs; n++, i++) y[i] += bias[n];
  return y;
}

/** The products of x with the rows of a matrix from `first` on, four at a time. */
function product(y, x, weight, first, outputs, inputs) {
  let n = first;
  for (; n + 4 <= outputs; n += 4) {
    let p = n * inputs, q = p + inputs, r = q + inputs, s = r + inputs;
    let a = 0, b = 0, c = 0, d = 0;
    for (let k = 0; k < inputs; k++) {
      const value = x[k];
      a += weight[p + k] * value;
      b += weight[q + k] * value;
      c += weight[r + k] * value;
      d += weight[s + k] * value;
    }
    y[n] = a;
    y[n + 1] = b;
    y[n + 2] = c;
    y[n + 3] = d;
  }
  for (; n < outputs; n++) {
    let sum = 0;
    for (let k = 0, p = n * inputs; k < inputs; k++) sum += weight[p + k] * x[k];
    y[n] = sum;
  }
}

// The same product in WebAssembly, four numbers at a time, which is several times faster. Its program is put together
// here, byte by byte, for there is no compiler in a page. A browser that has none of it uses `product`.

/** A whole number as WebAssembly writes it, 7 bits in each byte. */
function leb(value) {
  return value < 64 ? [value] : [(value & 127) | 128, ...leb(value >> 7)];
}

/** multiply(w, x, y, outputs, inputs, rows): addresses of (outputs, inputs), (rows, inputs) and (rows, outputs) float32. */
function productProgram() {
  const I32 = 0x7f, V128 = 0x7b;
  const get = (local) => [0x20, local], set = (local) => [0x21, local], number = (value) => [0x41, ...leb(value)];
  const add = [0x6a], times = [0x6c], isBelow = [0x49], loop = [0x03, 0x40], againIf = [0x0d, 0], end = [0x0b];
  const load = [0xfd, 0x00, 4, 0], zero = [0xfd, 0x0c, ...Array(16).fill(0)], addFloats = [0xfd, 0xe4, 0x01], timesFloats = [0xfd, 0xe6, 0x01];
  const lane = (i) => [0xfd, 0x1f, i], addFloat = [0x92], store = (offset) => [0x38, 2, offset];
  const [w, x, y, outputs, inputs, rows, n, r, p, q, last, stride, xs, sums] = [...Array(13).keys(), [13, 14, 15, 16]];
  const increase = (local, ...by) => [...get(local), ...by.flat(), ...add, ...set(local)];
  const sumOf = (local) => [0, 1, 2, 3].flatMap((i) => [...get(local), ...lane(i), ...(i ? addFloat : [])]);
  const body = [
    ...get(inputs), ...number(4), ...times, ...set(stride),
    ...loop, // over outputs, four at a time
      ...number(0), ...set(r), ...get(x), ...set(q),
      ...loop, // over rows
        ...get(w), ...set(p), ...get(q), ...get(stride), ...add, ...set(last),
        ...sums.flatMap((sum) => [...zero, ...set(sum)]),
        ...loop, // over inputs, four at a time
          ...get(q), ...load, ...set(xs),
          ...sums.flatMap((sum, i) => [
            ...get(sum), ...get(p), ...get(stride), ...number(i), ...times, ...add, ...load, ...get(xs), ...timesFloats, ...addFloats, ...set(sum),
          ]),
          ...increase(p, number(16)), ...increase(q, number(16)),
          ...get(q), ...get(last), ...isBelow, ...againIf,
        ...end,
        // y + 4 (r outputs + n)
        ...get(y), ...get(r), ...get(outputs), ...times, ...get(n), ...add, ...number(4), ...times, ...add, ...set(p),
        ...sums.flatMap((sum, i) => [...get(p), ...sumOf(sum), ...store(4 * i)]),
        ...increase(r, number(1)), ...get(r), ...get(rows), ...isBelow, ...againIf,
      ...end,
      ...increase(w, get(stride), number(4), times), ...increase(n, number(4)),
      ...get(n), ...get(outputs), ...isBelow, ...againIf,
    ...end,
  ];
  const section = (id, content) => [id, ...unsigned(content.length), ...content];
  const text = (word) => [word.length, ...new TextEncoder().encode(word)];
  const code = [2, 6, I32, 5, V128, ...body, ...end]; // two kinds of locals beside the six arguments
  return new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 6, I32, I32, I32, I32, I32, I32, 0]),
    ...section(2, [1, ...text("e"), ...text("m"), 2, 0, 1]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...text("f"), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}

function unsigned(value) {
  return value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >> 7)];
}

const TOGETHER = 16; // rows that are multiplied at a time, for which there is room

/** Keeps matrices where WebAssembly reaches them. */
class Multiplier {
  constructor(matrices) {
    const usable = matrices.filter(({ shape }) => shape.length === 2 && shape[1] % 4 === 0 && shape[0] >= 4);
    const most = (axis) => Math.max(4, ...usable.map(({ shape }) => shape[axis]));
    this.x = 0;
    this.y = 4 * TOGETHER * most(1);
    let size = this.y + 4 * TOGETHER * most(0);
    const offsets = usable.map(({ values }) => (size += 4 * values.length) - 4 * values.length);
    const memory = new WebAssembly.Memory({ initial: Math.ceil(size / 65536) });
    this.numbers = new Float32Array(memory.buffer);
    usable.forEach((matrix, i) => {
      const values = this.numbers.subarray(offsets[i] / 4, offsets[i] / 4 + matrix.values.length);
      values.set(matrix.values);
      Object.assign(matrix, { values, at: { multiplier: this, offset: offsets[i] } });
    });
    this.program = new WebAssembly.Instance(new WebAssembly.Module(productProgram()), { e: { m: memory } }).exports.f;
  }

  multiply(result, x, rows, offset, { weight, outputs, inputs }) {
    const { numbers } = this, whole = outputs - (outputs % 4);
    for (let first = 0; first < rows; first += TOGETHER) {
      const count = Math.min(TOGETHER, rows - first);
      numbers.set(x.subarray(first * inputs, (first + count) * inputs), this.x);
      this.program(offset, this.x, this.y, whole, inputs, count);
      for (let row = 0; row < count; row++) {
        const to = result.subarray((first + row) * outputs, (first + row + 1) * outputs), from = this.y / 4 + row * whole;
        to.set(numbers.subarray(from, from + whole));
        if (whole < outputs) product(to, x.subarray((first + row) * inputs, (first + row + 1) * inputs), weight, whole, outputs, inputs);
      }
    }
  }
}

/** gamma (x - mean) / sqrt(variance + eps) + beta of each row. */
function layerNorm({ weight, bias }, x, rows, eps) {
  const size = weight.length, y = new Float32Array(x.length);
  for (let row = 0; row < rows; row++) {
    const start = row * size;
    let mean = 0, variance = 0;
    for (let i = 0; i < size; i++) mean += x[start + i];
    mean /= size;
    for (let i = 0; i < size; i++) variance += (x[start + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / size + eps);
    for (let i = 0; i < size; i++) y[start + i] = (x[start + i] - mean) * scale * weight[i] + bias[i];
  }
  return y;
}

/** exp(x_i) / sum_j exp(x_j), in place. */
function softmax(x) {
  let largest = -Infinity, sum = 0;
  for (let i = 0; i < x.length; i++) if (x[i] > largest) largest = x[i];
  for (let i = 0; i < x.length; i++) sum += x[i] = Math.exp(x[i] - largest);
  for (let i = 0; i < x.length; i++) x[i] /= sum;
}

/** Log-probabilities of logits, in place. */
function logSoftmax(x) {
  let largest = -Infinity, sum = 0;
  for (let i = 0; i < x.length; i++) if (x[i] > largest) largest = x[i];
  for (let i = 0; i < x.length; i++) sum += Math.exp(x[i] - largest);
  const normaliser = largest + Math.log(sum);
  for (let i = 0; i < x.length; i++) x[i] -= normaliser;
  return x;
}

/** The error function: its series, of positive terms alone. */
function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  let term = size, sum = size;
  for (let n = 1; term > 1e-9 * sum; n++) sum += term *= (2 * size * size) / (2 * n + 1);
  return Math.sign(x) * (2 / Math.sqrt(Math.PI)) * Math.exp(-size * size) * sum;
}

const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  swiglu: (x) => x / (1 + Math.exp(-x)), // of the gate, which the other projection is multiplied by
};

/** Sine and cosine of pos / 10000^(2i / size), for each i in turn. Those of a position are computed once. */
class Angles {
  constructor(size) {
    Object.assign(this, { size, known: [] });
  }

  at(position) {
    return (this.known[position] ??= Float32Array.from({ length: this.size }, (_, i) => {
      const angle = position * 10000 ** (-(i - (i % 2)) / this.size);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    }));
  }
}

const SHOWN_POSITIONS = 64; // least rows in the picture of the positions, if the model has as many

/** Turns the pairs of columns of one head's query or key by angles. */
function turn(x, start, angles) {
  for (let i = 0; i < angles.length; i += 2) {
    const sin = angles[i], cos = angles[i + 1], a = x[start + i], b = x[start + i + 1];
    x[start + i] = a * cos - b * sin;
    x[start + i + 1] = a * sin + b * cos;
  }
}

// --- model: the Transformer ---

/** Keys and values of the positions so far, of all layers of a stack; one hypothesis has one. */
class Past {
  constructor(layers, keySize, valueSize) {
    Object.assign(this, { keySize, valueSize, capacity: 0 });
    this.keys = Array.from({ length: layers }, () => new Float32Array(0));
    this.values = Array.from({ length: layers }, () => new Float32Array(0));
  }

  /** Makes room for so many positions. */
  reserve(length) {
    if (length <= this.capacity) return;
    this.capacity = Math.max(length, 2 * this.capacity, 32);
    const wider = (old, size) => {
      const made = new Float32Array(this.capacity * size);
      made.set(old);
      return made;
    };
    this.keys = this.keys.map((old) => wider(old, this.keySize));
    this.values = this.values.map((old) => wider(old, this.valueSize));
  }

  /** Another one with the first positions of this. */
  copy(length) {
    const made = new Past(this.keys.length, this.keySize, this.valueSize);
    made.reserve(length + 1);
    this.keys.forEach((keys, layer) => made.keys[layer].set(keys.subarray(0, length * this.keySize)));
    this.values.forEach((values, layer) => made.values[layer].set(values.subarray(0, length * this.valueSize)));
    return made;
  }
}

/** What decoding keeps of one sentence: the memory's keys and values once, and the past of each hypothesis. */
class State {
  constructor(memory, pasts, length) {
    Object.assign(this, { memory, pasts, length });
  }

  /** Row i takes over what row `rows[i]` has generated. */
  reorder(rows) {
    const taken = new Set();
    this.pasts = rows.map((row) => {
      if (taken.has(row)) return this.pasts[row].copy(this.length);
      taken.add(row);
      return this.pasts[row];
    });
  }
}

/**
 * A Transformer of any of the three architectures.
 *
 * `look(name, values, shape, places)`, if given, is shown all that is computed, row by row, under the names of
 * engine/explain/trace.py: what MODULE returns as `MODULE`, other results as `MODULE.RESULT`; rows of heads are
 * (T, H, size), maps are (H, T, S). `places` are the positions of the rows of the stack that computes. It may write into
 * outputs of modules and `.heads`: so a head is switched off, or a hidden state is put in the place of another.
 */
class Transformer {
  constructor({ config, forbidden }, tensors) {
    Object.assign(this, { config, tensors, forbidden, look: null, places: [] });
    if (typeof WebAssembly === "object" && WebAssembly.validate(productProgram())) new Multiplier([...new Set(Object.values(tensors))]);
    const [source, target] = { encoder_decoder: ["src_embedding", "tgt_embedding"] }[config.architecture] ?? ["embedding", "embedding"];
    [this.source, this.target] = [this.embedding(source), this.embedding(target)];
    const crosses = config.architecture === "encoder_decoder";
    this.encoder = config.num_encoder_layers ? this.stack("encoder", config.num_encoder_layers, false) : null;
    this.decoder = config.num_decoder_layers ? this.stack("decoder", config.num_decoder_layers, crosses) : null;
    this.output = this.linearOf("output_layer");
    this.angles = new Angles(config.positions === "rotary" ? this.keySize : config.d_model);
    this.activation = ACTIVATIONS[config.activation];
    if (!this.activation) throw new Error(`activation ${config.activation} is not known here`);
  }

  // reading

  linearOf(name) {
    const { shape, values, at } = this.tensors[`${name}.weight`];
    return { weight: values, bias: this.tensors[`${name}.bias`]?.values, outputs: shape[0], inputs: shape[1], at };
  }

  normOf(name) {
    return { name, weight: this.tensors[`${name}.weight`].values, bias: this.tensors[`${name}.bias`].values };
  }

  embedding(name) {
    return { name, tokens: this.tensors[`${name}.tokens.weight`].values, positions: this.tensors[`${name}.positions.weight`] };
  }

  attentionOf(name, isTurned) {
    const [q, k, v, out] = ["q_proj", "k_proj", "v_proj", "out_proj"].map((part) => this.linearOf(`${name}.${part}`));
    return { name, q, k, v, out, norm: this.normOf(`${name}_residual.norm`), isTurned };
  }

  stack(name, count, crosses) {
    const isTurned = this.config.positions === "rotary";
    const layers = Array.from({ length: count }, (_, i) => {
      const layer = `${name}.layers.${i}`;
      return {
        self: this.attentionOf(`${layer}.self_attn`, isTurned),
        cross: crosses ? this.attentionOf(`${layer}.cross_attn`, false) : null,
        forward: `${layer}.feed_forward`,
        first: this.linearOf(`${layer}.feed_forward.linear_1`),
        gate: this.config.activation === "swiglu" ? this.linearOf(`${layer}.feed_forward.gate`) : null,
        second: this.linearOf(`${layer}.feed_forward.linear_2`),
        norm: this.normOf(`${layer}.feed_forward_residual.norm`),
      };
    });
    return { layers, norm: this.config.norm_order === "pre" ? this.normOf(`${name}.norm`) : null };
  }

  // parts

  shown(name, values, shape) {
    if (this.look) this.look(name, values, shape, this.places);
    return values;
  }

  /** LayerNorm of each row. */
  normed(norm, x, rows) {
    const { name } = norm, size = norm.weight.length, y = layerNorm(norm, x, rows, this.config.norm_eps);
    if (this.look) {
      this.look(`${name}.in`, x, [rows, size], this.places);
      const means = x.reduce((sums, one, i) => ((sums[Math.floor(i / size)] += one / size), sums), new Float64Array(rows));
      const variances = x.reduce((sums, one, i) => ((sums[Math.floor(i / size)] += (one - means[Math.floor(i / size)]) ** 2 / size), sums), new Float64Array(rows));
      this.look(`${name}.mean`, means, [rows], this.places);
      this.look(`${name}.variance`, variances, [rows], this.places);
    }
    return this.shown(name, y, [rows, size]);
  }

  /** x = E[ids] * sqrt(D) + PE: rows of vectors for ids that stand at places. */
  embed({ name, tokens, positions }, ids, places) {
    const size = this.config.d_model, scale = this.config.scale_embeddings ? Math.sqrt(size) : 1;
    const x = new Float32Array(ids.length * size), shape = [ids.length, size];
    this.places = places;
    ids.forEach((id, row) => x.set(tokens.subarray(id * size, (id + 1) * size), row * size));
    this.shown(`${name}.tokens`, x, shape);
    for (let i = 0; i < x.length; i++) x[i] *= scale;
    this.shown(`${name}.scaled`, x, shape);
    const added = places.map((place) => this.positionOf(positions, place));
    if (added[0]) added.forEach((vector, row) => { for (let i = 0; i < size; i++) x[row * size + i] += vector[i]; });
    if (this.look && added[0]) {
      this.shown(`${name}.positions`, Float32Array.from(added.flatMap((one) => [...one])), shape);
      const most = this.config.max_seq_len * (this.encoder ? 1 : 2), count = Math.max(Math.min(SHOWN_POSITIONS, most), ids.length);
      const picture = Array.from({ length: count }, (_, place) => [...this.positionOf(positions, place)]).flat();
      this.shown(`${name}.picture`, Float32Array.from(picture), [count, size]);
    }
    return this.shown(name, x, shape);
  }

  /** The vector that is added at a place, if one is. */
  positionOf(learned, place) {
    const size = this.config.d_model;
    return this.config.positions === "sinusoidal" ? this.angles.at(place) : learned?.values.subarray(place * size, (place + 1) * size);
  }

  /** The residual connection and LayerNorm around one sub-layer. */
  residual(name, x, rows, norm, sublayer) {
    const isPre = this.config.norm_order === "pre", shape = [rows, this.config.d_model];
    this.shown(`${name}_residual.in`, x, shape);
    const added = this.shown(name, sublayer(isPre ? this.normed(norm, x, rows) : x), shape);
    for (let i = 0; i < x.length; i++) added[i] += x[i];
    return this.shown(`${name}_residual`, isPre ? added : this.normed(norm, added, rows), shape);
  }

  feedForward(layer, x, rows) {
    const { activation } = this, name = layer.forward, shape = [rows, layer.first.outputs];
    const hidden = this.shown(`${name}.linear_1`, linear(layer.first, x, rows), shape);
    if (layer.gate) {
      const gate = this.shown(`${name}.gate`, linear(layer.gate, x, rows), shape);
      for (let i = 0; i < hidden.length; i++) hidden[i] *= activation(gate[i]);
    } else for (let i = 0; i < hidden.length; i++) hidden[i] = activation(hidden[i]);
    return linear(layer.second, this.shown(`${name}.hidden`, hidden, shape), rows);
  }

  /** softmax(q K^T / sqrt(d_k)) V of each head, for rows of queries. Row r sees the first seen(r) keys of sources(r). */
  attend(name, q, rows, sources, seen) {
    const { num_heads: heads } = this.config, { keySize, valueSize } = this;
    this.shown(`${name}.q`, q, [rows, heads, keySize]);
    const out = new Float32Array(rows * heads * valueSize), scale = 1 / Math.sqrt(keySize);
    const columns = Math.max(...Array.from({ length: rows }, (_, row) => seen(row)));
    const all = this.look ? new Float32Array(heads * rows * columns) : null;
    for (let row = 0; row < rows; row++) {
      const [keys, values] = sources(row), count = seen(row), weights = new Float64Array(count);
      for (let head = 0; head < heads; head++) {
        const from = (row * heads + head) * keySize, to = (row * heads + head) * valueSize;
        for (let s = 0; s < count; s++) {
          let sum = 0;
          for (let i = 0, at = (s * heads + head) * keySize; i < keySize; i++) sum += q[from + i] * keys[at + i];
          weights[s] = sum * scale;
        }
        softmax(weights);
        if (all) all.set(weights, (head * rows + row) * columns);
        for (let s = 0; s < count; s++)
          for (let i = 0, weight = weights[s], at = (s * heads + head) * valueSize; i < valueSize; i++) out[to + i] += weight * values[at + i];
      }
    }
    if (all) {
      this.showScores(name, q, rows, columns, sources, seen);
      this.shown(`${name}.weights`, all, [heads, rows, columns]);
    }
    this.shown(`${name}.heads`, out, [rows, heads, valueSize]);
    return this.shown(`${name}.concat`, out, [rows, heads * valueSize]);
  }

  /** Products of queries and keys, also of those that a row does not see; divided; and with -inf for these. */
  showScores(name, q, rows, columns, sources, seen) {
    const { num_heads: heads } = this.config, { keySize } = this, scale = 1 / Math.sqrt(keySize);
    const products = new Float32Array(heads * rows * columns), masked = new Float32Array(products.length);
    for (let head = 0, to = 0; head < heads; head++)
      for (let row = 0; row < rows; row++) {
        const [keys] = sources(row), from = (row * heads + head) * keySize;
        for (let s = 0; s < columns; s++, to++) {
          let sum = 0;
          for (let i = 0, at = (s * heads + head) * keySize; i < keySize; i++) sum += q[from + i] * keys[at + i];
          products[to] = sum;
          masked[to] = s < seen(row) ? sum * scale : -Infinity;
        }
      }
    this.shown(`${name}.products`, products, [heads, rows, columns]);
    this.shown(`${name}.scores`, products.map((one) => one * scale), [heads, rows, columns]);
    this.shown(`${name}.masked`, masked, [heads, rows, columns]);
  }

  get keySize() {
    return this.config.d_k ?? this.config.d_model / this.config.num_heads;
  }

  get valueSize() {
    return this.config.d_v ?? this.config.d_model / this.config.num_heads;
  }

  turned(x, rows, places) {
    const heads = this.config.num_heads, size = this.keySize;
    for (let row = 0; row < rows; row++)
      for (let head = 0; head < heads; head++) turn(x, (row * heads + head) * size, this.angles.at(places[row]));
    return x;
  }

  /**
   * Rows of vectors through a stack. Row r is the position `places[r]` of `pasts[r]`, and sees so many of its positions.
   * Keys and values are written there first.
   */
  run(stack, x, pasts, places, seen, memory) {
    const rows = places.length, heads = this.config.num_heads;
    stack.layers.forEach((layer, number) => {
      x = this.residual(layer.self.name, x, rows, layer.self.norm, (x) => {
        const { q, k, v, out, isTurned, name } = layer.self;
        const [queries, keys, values] = [q, k, v].map((projection) => linear(projection, x, rows));
        if (isTurned)
          for (const [part, one] of [["q", queries], ["k", keys]])
            this.turned(this.shown(`${name}.rotary.${part}`, one, [rows, heads, this.keySize]), rows, places);
        this.shown(`${name}.k`, keys, [rows, heads, this.keySize]);
        this.shown(`${name}.v`, values, [rows, heads, this.valueSize]);
        for (let row = 0; row < rows; row++) {
          const [past, keyWidth, valueWidth] = [pasts[row], heads * this.keySize, heads * this.valueSize];
          past.keys[number].set(keys.subarray(row * keyWidth, (row + 1) * keyWidth), places[row] * keyWidth);
          past.values[number].set(values.subarray(row * valueWidth, (row + 1) * valueWidth), places[row] * valueWidth);
        }
        const source = (row) => [pasts[row].keys[number], pasts[row].values[number]];
        return linear(out, this.attend(name, queries, rows, source, seen), rows);
      });
      if (layer.cross)
        x = this.residual(layer.cross.name, x, rows, layer.cross.norm, (x) => {
          const { q, out, name } = layer.cross, source = [memory.keys[number], memory.values[number]];
          return linear(out, this.attend(name, linear(q, x, rows), rows, () => source, () => memory.length), rows);
        });
      x = this.residual(layer.forward, x, rows, layer.norm, (x) => this.feedForward(layer, x, rows));
    });
    return stack.norm ? this.normed(stack.norm, x, rows) : x;
  }

  emptyPast(stack) {
    return new Past(stack.layers.length, this.config.num_heads * this.keySize, this.config.num_heads * this.valueSize);
  }

  /** A whole sequence through a stack, each position seeing all of it, or those up to its own: [vectors, past]. */
  whole(stack, embedding, ids, { isCausal, memory = null }) {
    const past = this.emptyPast(stack), places = ids.map((_, i) => i);
    past.reserve(ids.length);
    const seen = isCausal ? (row) => row + 1 : () => ids.length;
    const x = this.embed(embedding, ids, places);
    return [this.run(stack, x, ids.map(() => past), places, seen, memory), past];
  }

  // what searches and pages call

  /** The encoder's output for source ids, (S, D). */
  encode(ids) {
    return this.whole(this.encoder, this.source, ids, { isCausal: false })[0];
  }

  /** Keys and values of an encoder's output for all decoder layers. */
  memoryOf(encoded, length) {
    const project = (part, size) => this.decoder.layers.map(({ cross }) =>
      this.shown(`${cross.name}.${part}`, linear(cross[part], encoded, length), [length, this.config.num_heads, size]));
    return { keys: project("k", this.keySize), values: project("v", this.valueSize), length };
  }

  /** The state that a search begins with: of a source, or of a text alone where there are no ids. */
  begin(ids) {
    if (this.encoder) return new State(this.memoryOf(this.encode(ids), ids.length), [this.emptyPast(this.decoder)], 0);
    const past = ids.length ? this.whole(this.decoder, this.target, ids, { isCausal: true })[1] : this.emptyPast(this.decoder);
    return new State(null, [past], ids.length);
  }

  /** Takes the newest token of each row; gives log-probabilities of what may come next, an array for each row. */
  step(last, state) {
    const place = state.length++, places = last.map(() => place);
    for (const past of state.pasts) past.reserve(state.length);
    const x = this.embed(this.target, last, places);
    const y = this.run(this.decoder, x, state.pasts, places, () => state.length, state.memory);
    return this.logits(y, last.length, true).map(logSoftmax);
  }

  logits(x, rows, forbids) {
    const size = this.output.outputs, all = linear(this.output, x, rows);
    this.shown("output_layer", all, [rows, size]);
    if (forbids) for (let row = 0; row < rows; row++) for (const id of this.forbidden) all[row * size + id] = -Infinity;
    return Array.from({ length: rows }, (_, row) => all.subarray(row * size, (row + 1) * size));
  }

  /** All at once, as in training: source and target ids to logits, an array for each target position. */
  forward(src, tgtIn) {
    if (this.encoder) {
      const memory = this.memoryOf(this.encode(src), src.length);
      return this.logits(this.whole(this.decoder, this.target, tgtIn, { isCausal: true, memory })[0], tgtIn.length, false);
    }
    const [x] = this.whole(this.decoder, this.target, [...src, ...tgtIn], { isCausal: true });
    return this.logits(x.subarray(src.length * this.config.d_model), tgtIn.length, false);
  }

  /** A sentence encoder's vector of ids: the mean over the tokens, scaled to length 1. */
  vector(ids) {
    const x = this.encode(ids), size = this.config.d_model, mean = new Float32Array(size);
    for (let i = 0; i < x.length; i++) mean[i % size] += x[i] / ids.length;
    this.shown("sentence.mean", mean, [1, size]);
    const length = Math.max(Math.hypot(...mean), 1e-12);
    return this.shown("sentence.vector", mean.map((one) => one / length), [1, size]);
  }
}

// --- searches ---

/** Thrown inside a search that is not wanted any more. */
class Stopped extends Error {}

const lengthNormaliser = (length, alpha) => ((5 + length) / 6) ** alpha;

/** An output: ids without eos, and the log-probability of each of them and of eos. */
function finished(ids, gains, alpha) {
  const logProb = gains.reduce((sum, one) => sum + one, 0);
  return { ids, gains, logProb, score: logProb / lengthNormaliser(ids.length + 1, alpha) };
}

/** Leaves one token as the only choice; it keeps its log-probability. */
function leaveOnly(logProbs, token) {
  const kept = logProbs[token];
  logProbs.fill(-Infinity)[token] = kept;
}

/** Makes impossible the tokens with which an output would have the same `size` tokens in a row twice. */
function forbidRepeats(logProbs, ids, size) {
  if (!size || ids.length < size) return;
  const begun = ids.slice(ids.length - size + 1);
  for (let at = 0; at + size <= ids.length; at++)
    if (begun.every((id, i) => ids[at + i] === id)) logProbs[ids[at + size - 1]] = -Infinity;
}

function likeliest(logProbs) {
  let best = 0;
  for (let i = 1; i < logProbs.length; i++) if (logProbs[i] > logProbs[best]) best = i;
  return best;
}

/** Extends one output token by token until it ends. `choose` picks a token by log-probabilities and position. */
async function extendRow(step, task, { alpha, noRepeat = 0, choose = likeliest }) {
  const ids = [], gains = [];
  for (let last = BOS; last !== EOS; ) {
    const [logProbs] = await step([last]), position = ids.length;
    if (position < task.prefix.length) leaveOnly(logProbs, task.prefix[position]);
    else forbidRepeats(logProbs, ids, noRepeat);
    last = position + 1 >= task.limit ? EOS : choose(logProbs, position);
    gains.push(logProbs[last]);
    if (last !== EOS) ids.push(last);
  }
  return [finished(ids, gains, alpha)];
}

/** The distribution that is sampled from: [[token, probability]] in falling order, summing to 1. */
function restricted(logProbs, { temperature = 1, topK = 0, topP = 1 }) {
  const divided = Float64Array.from(logProbs, (one) => one / Math.max(temperature, 1e-30));
  softmax(divided);
  let likely = [...divided.keys()].sort((a, b) => divided[b] - divided[a]);
  if (topK > 0) likely = likely.slice(0, topK);
  let sum = likely.reduce((total, token) => total + divided[token], 0), before = 0;
  let chosen = likely.map((token) => [token, divided[token] / sum]);
  if (topP < 1) chosen = chosen.filter(([, share]) => ((before += share), before - share < topP));
  sum = chosen.reduce((total, [, share]) => total + share, 0);
  return chosen.map(([token, share]) => [token, share / sum]);
}

/** A number from 0 to 1 that depends on a text alone: what is drawn of a sample's seed, line and position. */
function drawn(text) {
  let hash = crc32(text);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

function sample(step, task, options) {
  const choose = (logProbs, position) => {
    const likely = restricted(logProbs, options), u = drawn(`${options.seed ?? 0} ${task.key} ${position}`);
    let sum = 0;
    return (likely.find(([, share]) => (sum += share) > u) ?? likely.at(-1))[0];
  };
  return extendRow(step, task, { alpha: options.alpha, choose });
}

/** The `count` likeliest one-token extensions of hypotheses, likeliest first: { logProb, row, token, gain }. */
function likeliestExtensions(hypotheses, logProbs, count) {
  const best = [];
  hypotheses.forEach((one, row) => {
    const gains = logProbs[row];
    let least = best.length < count ? -Infinity : best.at(-1).logProb;
    for (let token = 0; token < gains.length; token++) {
      const logProb = one.logProb + gains[token];
      if (!(logProb > least)) continue;
      let at = best.length;
      while (at && best[at - 1].logProb < logProb) at--;
      best.splice(at, 0, { logProb, row, token, gain: gains[token] });
      if (best.length > count) best.pop();
      if (best.length === count) least = best.at(-1).logProb;
    }
  });
  return best;
}

/** Beam search: see `Beam` in seq2seq/decoding/beam.py, of which this has every rule. */
async function beam(step, state, task, { size, alpha, noRepeat = 0 }) {
  let open = [{ ids: [], gains: [], logProb: 0 }];
  const ended = [];
  let likeliestEnded = -Infinity;
  for (;;) {
    const length = open[0].ids.length, logProbs = await step(open.map((one) => one.ids.at(-1) ?? BOS));
    open.forEach((one, row) => {
      if (length < task.prefix.length) leaveOnly(logProbs[row], task.prefix[length]);
      else forbidRepeats(logProbs[row], one.ids, noRepeat);
      if (length + 1 >= task.limit) leaveOnly(logProbs[row], EOS);
    });
    const found = likeliestExtensions(open, logProbs, 2 * size);
    for (const one of found.slice(0, size)) {
      if (one.token !== EOS) continue;
      const parent = open[one.row];
      ended.push(finished(parent.ids, [...parent.gains, one.gain], alpha));
      likeliestEnded = Math.max(likeliestEnded, one.logProb);
    }
    const goingOn = found.filter((one) => one.token !== EOS).slice(0, size);
    if (!goingOn.length || length + 1 >= task.limit || (ended.length >= size && likeliestEnded >= goingOn[0].logProb)) break;
    state.reorder(goingOn.map((one) => one.row));
    open = goingOn.map(({ row, token, gain, logProb }) => ({ ids: [...open[row].ids, token], gains: [...open[row].gains, gain], logProb }));
  }
  return ended.sort((a, b) => b.score - a.score);
}

// --- searches: a beam under constraint ---

const MAX_READINGS = 16;
const mayFollow = (spelling, token) => !spelling.after || spelling.after.has(token);
const longestOf = (phrase) => Math.max(...phrase.spellings.map((spelling) => spelling.tokens.length));

/** How much of its phrases a hypothesis has, in all ways to see it: see `PhraseProgress` in seq2seq/decoding/phrases.py.
 *
 * A reading is { met, begun, spelling, come }: the phrases met, as bits; another one that has come in part.
 */
class PhraseProgress {
  constructor(phrases, onlyInPhrases, readings = [{ met: 0n, begun: -1, spelling: null, come: 0 }]) {
    Object.assign(this, { phrases, onlyInPhrases, readings });
    this.tokens = Math.max(...readings.map((reading) => this.tokensOf(reading)));
  }

  seen({ met, begun }) {
    return begun < 0 ? met : met | (1n << BigInt(begun));
  }

  restOf({ spelling, come }) {
    return spelling ? spelling.tokens.slice(come) : [];
  }

  tokensOf(reading) {
    const seen = this.seen(reading);
    const there = this.phrases.reduce((sum, phrase, i) => sum + ((seen >> BigInt(i)) & 1n ? longestOf(phrase) : 0), 0);
    return there - this.restOf(reading).length;
  }

  unseen(reading) {
    const seen = this.seen(reading);
    return this.phrases.map((phrase, number) => [number, phrase]).filter(([number]) => !((seen >> BigInt(number)) & 1n));
  }

  /** The spellings of the phrases that a reading lacks, of equal phrases one. */
  unmet(reading) {
    const open = new Map(this.unseen(reading).map(([number, phrase]) => [phrase, number]));
    return [...open].flatMap(([phrase, number]) => phrase.spellings.map((spelling) => [number, spelling]));
  }

  /** Tokens that have to come, at least, after `previous` to have all phrases. */
  missing(previous) {
    const least = ({ spellings }) => Math.min(...spellings.map((one) => one.tokens.length + !mayFollow(one, previous)));
    return Math.min(
      ...this.readings.map((reading) =>
        this.unseen(reading).reduce((sum, [, phrase]) => sum + least(phrase), this.restOf(reading).length),
      ),
    );
  }

  get mostMissing() {
    return this.phrases.reduce((sum, phrase) => sum + longestOf(phrase) + 1, 0);
  }

  /** Tokens that bring the furthest readings further. */
  wanted(previous) {
    const found = new Set();
    for (const reading of this.readings) {
      if (this.tokensOf(reading) < this.tokens) continue;
      const rest = this.restOf(reading);
      if (rest.length) found.add(rest[0]);
      else
        for (const [, spelling] of this.unmet(reading)) {
          const isAllowed = !reading.spelling?.before || reading.spelling.before.has(spelling.tokens[0]);
          if (isAllowed && mayFollow(spelling, previous)) found.add(spelling.tokens[0]);
        }
    }
    return found;
  }

  /** The tokens that may come next; null: all. */
  get only() {
    const found = new Set();
    for (const reading of this.readings) {
      const rest = this.restOf(reading);
      if (rest.length) found.add(rest[0]);
      else if (!reading.spelling?.before) return null;
      else for (const token of reading.spelling.before) found.add(token);
    }
    return found;
  }

  /** What it becomes with a token after `previous`; null where a token would stand outside a phrase. */
  after(previous, token) {
    const known = new Map();
    for (const reading of this.readings)
      for (const one of this.extended(reading, previous, token)) {
        const key = `${one.met} ${one.begun} ${one.spelling?.tokens} ${one.come}`;
        if (!known.has(key)) known.set(key, one);
      }
    const found = [...known.values()];
    const kept = found.filter((one) => !found.some((other) => this.isNoBetter(one, other)));
    kept.sort((a, b) => (a.begun >= 0) - (b.begun >= 0) || this.tokensOf(b) - this.tokensOf(a));
    return kept.length ? new PhraseProgress(this.phrases, this.onlyInPhrases, kept.slice(0, MAX_READINGS)) : null;
  }

  *extended(reading, previous, token) {
    const rest = this.restOf(reading);
    if (rest.length) {
      if (rest[0] === token) yield this.begunWith(reading.met, reading.begun, reading.spelling, reading.come + 1);
      return;
    }
    if (reading.begun >= 0) {
      if (reading.spelling.before && !reading.spelling.before.has(token)) return;
      reading = { met: this.seen(reading), begun: -1, spelling: null, come: 0 };
    }
    if (!this.onlyInPhrases(token)) yield reading;
    for (const [number, spelling] of this.unmet(reading))
      if (spelling.tokens[0] === token && mayFollow(spelling, previous)) yield this.begunWith(reading.met, number, spelling, 1);
  }

  begunWith(met, number, spelling, come) {
    if (come === spelling.tokens.length && !spelling.before) return { met: met | (1n << BigInt(number)), begun: -1, spelling: null, come: 0 };
    return { met, begun: number, spelling, come };
  }

  /** Whether a reading can do nothing that another one, which lacks fewer phrases, cannot do as well. */
  isNoBetter(one, other) {
    if (one.begun !== other.begun || one.spelling !== other.spelling || one.come !== other.come) return false;
    if (one.met === other.met || (one.met & other.met) !== one.met) return false;
    const more = other.met & ~one.met;
    const needed = ({ spellings }) => spellings.some((spelling) => spelling.tokens.some(this.onlyInPhrases));
    return !this.phrases.some((phrase, i) => (more >> BigInt(i)) & 1n && needed(phrase));
  }
}

/** The best k candidates by turns of the banks, which have equally many tokens of phrases; best first. */
function allocate(candidates, k) {
  const banks = new Map();
  for (const one of [...candidates].sort((a, b) => b.logProb - a.logProb))
    banks.set(one.progress.tokens, [...(banks.get(one.progress.tokens) ?? []), one]);
  const order = [...banks.keys()].sort((a, b) => b - a).map((tokens) => banks.get(tokens));
  const chosen = [];
  for (let rank = 0; order.some((bank) => rank < bank.length); rank++)
    for (const bank of order) if (rank < bank.length) chosen.push(bank[rank]);
  return chosen.slice(0, k).sort((a, b) => b.logProb - a.logProb);
}

/** Beam search that ends no hypothesis before it has all phrases: `ConstrainedBeam` in seq2seq/decoding/constrained.py. */
async function constrainedBeam(step, state, task, { size, alpha: asked, noRepeat = 0 }, limits, onlyInPhrases) {
  const banks = task.phrases.reduce((sum, phrase) => sum + longestOf(phrase), 0) + 1;
  const k = Math.max(size, Math.min(limits.rows_of_a_bank * banks, limits.max_rows)), ended = [];
  const alpha = Math.min(asked, limits.most_penalty);
  let open = [{ ids: [], gains: [], logProb: 0, progress: new PhraseProgress(task.phrases, onlyInPhrases) }];
  let incomplete = [];
  while (open.length) {
    const position = open[0].ids.length, logProbs = await step(open.map((one) => one.ids.at(-1) ?? BOS));
    const candidates = open.flatMap((one, row) =>
      position < task.prefix.length
        ? [forced(one, row, logProbs[row], task.prefix[position])]
        : extensionsOf(one, row, logProbs[row], { room: task.limit - position - 1, size, noRepeat, onlyInPhrases }),
    );
    const best = allocate(candidates, k), ends = best.filter((one) => one.token === EOS);
    for (const one of ends) ended.push({ ...finished(open[one.row].ids, [...open[one.row].gains, one.gain], alpha), sum: one.logProb });
    const goingOn = best.filter((one) => one.token !== EOS);
    if (!goingOn.length && !ended.length) incomplete = open;
    if (!goingOn.length || isDone(ended, goingOn[0], position, { size, k, expected: task.expected }, limits)) break;
    state.reorder(goingOn.map((one) => one.row));
    open = goingOn.map(({ row, token, gain, logProb, progress }) => ({
      ids: [...open[row].ids, token], gains: [...open[row].gains, gain], logProb, progress,
    }));
  }
  if (ended.length) return ended.sort((a, b) => b.score - a.score);
  incomplete.sort((a, b) => b.progress.tokens - a.progress.tokens || b.logProb - a.logProb);
  return incomplete.map((one) => finished(one.ids, one.gains, alpha));
}

/** Whether enough hypotheses have ended, and one is likelier than all that go on, or has been the best for long. */
function isDone(ended, likeliest, position, { size, k, expected }, limits) {
  if (ended.length < size) return false;
  const best = ended.reduce((one, other) => (other.score > one.score ? other : one));
  if (position >= limits.longer * Math.max(best.ids.length, expected) + limits.more_tokens) return true;
  return ended.length >= k && Math.max(...ended.map((one) => one.sum)) >= likeliest.logProb;
}

function forced(one, row, logProbs, token) {
  const progress = one.progress.after(one.ids.at(-1) ?? BOS, token) ?? one.progress;
  return { logProb: one.logProb + logProbs[token], gain: logProbs[token], row, token, progress };
}

/** The extensions of a hypothesis that are likely or bring a phrase further. */
function extensionsOf(one, row, logProbs, { room, size, noRepeat, onlyInPhrases }) {
  const last = one.ids.at(-1) ?? BOS, free = logProbs.slice(), only = one.progress.only;
  forbidRepeats(free, one.ids, noRepeat);
  free[EOS] = -Infinity;
  for (let token = 0; token < free.length; token++) if (onlyInPhrases(token) || (only && !only.has(token))) free[token] = -Infinity;
  const wanted = room ? [...one.progress.wanted(last)].sort((a, b) => a - b) : [];
  const likely = likeliestExtensions([{ logProb: 0 }], [free], Math.min(size + 1, free.length));
  const extensions = new Map([...likely.map((found) => [found.token, found.gain]), ...wanted.map((token) => [token, logProbs[token]])]);
  const found = [];
  for (const [token, gain] of extensions) {
    const progress = gain > -Infinity ? one.progress.after(last, token) : null;
    if (progress && (progress.mostMissing < room || wanted.includes(token) || progress.missing(token) < room))
      found.push({ logProb: one.logProb + gain, gain, row, token, progress });
  }
  if (!one.progress.missing(last) && logProbs[EOS] > -Infinity)
    found.push({ logProb: one.logProb + logProbs[EOS], gain: logProbs[EOS], row, token: EOS, progress: one.progress });
  return found;
}

// --- machines ---

/** A machine that has been read: model, vocabularies, and the rules of its corpus. */
class Machine {
  constructor({ header, tensors, vocabularies }) {
    this.header = header;
    this.model = new Transformer(header, tensors);
    [this.src, this.tgt] = [vocabularies[0], vocabularies.at(-1)];
    const { unspaced } = header.characters;
    this.letter = `(?:(?!${unspaced})(?!_)${REGEX_WORD})`;
    this.pause = async () => {};
  }

  mask(text) {
    return new Masked(clean(text), this.header.carried);
  }

  /** A search's step over a state; between steps others have their turn, and a search can be stopped. */
  stepOf(state) {
    return async (last) => {
      await this.pause();
      return this.model.step(last, state);
    };
  }

  /** A short search, after which the browser has made fast code of all that a search takes. */
  async warmUp() {
    if (this.model.decoder) await this.search([EOS], { limit: 12, prefix: [] }, { size: 5, alpha: 1, noRepeat: 0 });
  }

  /** One search: greedy for a size of 1, samples where a temperature is given, else a beam. */
  search(ids, task, options) {
    const state = this.model.begin(ids);
    return this.searchFrom(this.stepOf(state), state, task, options);
  }

  async searchFrom(step, state, task, options) {
    if (task.phrases) return constrainedBeam(step, state, task, options, this.header.constrained, this.onlyInPhrases);
    if (options.temperature !== undefined) return sample(step, task, options);
    return options.size === 1 ? extendRow(step, task, options) : beam(step, state, task, options);
  }

  get onlyInPhrases() {
    return this.header.phrases ? isSymbolId : () => false;
  }

  /** Settings of a search: the run's own, with what is given instead. */
  searchOptions({ beam_size: size, length_penalty: alpha, no_repeat_ngram_size: noRepeat, ...sampling } = {}) {
    const { decoding } = this.header;
    const chosen = { size: size ?? decoding.beam_size, alpha: alpha ?? decoding.length_penalty };
    const { temperature, top_k: topK, top_p: topP, seed } = sampling;
    const drawing = temperature === undefined ? {} : { temperature, topK, topP, seed };
    return { ...chosen, noRepeat: noRepeat ?? decoding.no_repeat_ngram_size, ...drawing };
  }
}

/** Text to text: see engine/translator.py and translation.py. A text becomes parts, which are searched for, some twice. */
class Translator extends Machine {
  constructor(packed) {
    super(packed);
    const sets = (this.header.phrases?.sets ?? []).map((ranges) => setOfRanges(ranges));
    const spelling = ({ tokens, after, before }) => ({ tokens, after: sets[after], before: sets[before] });
    this.phrases = this.header.phrases?.symbols.map((pair) => pair.map((one) => one && { spellings: one.map(spelling) }));
  }

  /** The translation of one text: { text, score, logProb, parts .. }. */
  async translate(text, settings = {}) {
    const cleaned = clean(text), { header } = this;
    const masked = new Masked(cleaned, header.carried);
    const job = { masked, parts: [], repaired: false, looped: false, cut: false };
    if (!this.takesSearch(cleaned)) return this.result(job, cleaned ? printable(text) : "");
    const options = this.searchOptions(settings);
    const isBegun = this.tgt.encode(settings.prefix ?? "").length > 0;
    const [read, restore, unread] = isBegun ? [masked.text, asItIs, []] : inUsualForm(masked.text, this.src, header.facts);
    Object.assign(job, { restore, unread });
    if (!read) return this.result(job, printable(text)); // nothing of it is known
    for (const piece of this.partsOf(read, job)) {
      const ids = this.src.encode(piece), prefix = job.parts.length ? [] : this.tgt.encode(settings.prefix ?? "");
      const part = { text: piece, ids, prefix, phrases: null };
      job.parts.push(part);
      part.found = await this.find(part, options);
    }
    if (options.temperature === undefined) {
      for (const part of job.parts) await this.restorePlaceholders(job, part, options);
      if (header.facts.loops_are_faults) for (const part of job.parts) await this.breakLoop(job, part, options);
    }
    return this.result(job, restore(joinTexts(job.parts.map((part) => this.outputOf(part)))));
  }

  takesSearch(cleaned) {
    return Boolean(cleaned) && (hasWords(cleaned, this.header.expected) || !this.header.facts.keeps_letterless);
  }

  partsOf(text, job) {
    const most = this.model.config.max_seq_len - 1, count = (part) => this.src.encode(part).length;
    if (count(text) <= most) return [text];
    const [parts, cut] = splitText(text, count, most, (sentence, place) => isBetweenWords(sentence, place, this.header.characters));
    job.cut = cut;
    return parts;
  }

  limitOf(part) {
    const { max_length_factor: factor, max_length_offset: offset } = this.header.decoding, longest = this.model.config.max_seq_len;
    const limit = Math.max(1, Math.min(Math.floor(factor * part.ids.length) + offset, longest));
    const more = (part.phrases ?? []).reduce((sum, phrase) => sum + longestOf(phrase), 0);
    return Math.max(Math.min(limit + more, longest), part.prefix.length + 1);
  }

  find(part, options) {
    part.limit = this.limitOf(part);
    const expected = Math.max(part.ids.length, part.found?.[0].ids.length ?? 0), { limit, prefix, phrases, text: key } = part;
    return this.search([...part.ids, EOS], { limit, prefix, phrases, key, expected }, options);
  }

  outputOf(part) {
    return clean(this.tgt.decode(part.found[0].ids));
  }

  /** Where an output has other placeholders than its source, takes one that has the same, if it is good enough. */
  async restorePlaceholders(job, part, options) {
    if (!this.wrongPlaceholders(part)) return;
    let place = 0;
    part.phrases = [];
    for (const symbol of part.text.match(SYMBOL) ?? []) {
      place = part.text.indexOf(symbol, place);
      const isGlued = part.text.slice(Math.max(place - 1, 0), place) !== " ", phrase = this.phrases[SYMBOLS.indexOf(symbol)][Number(isGlued)];
      if (phrase) part.phrases.push(phrase);
      place += 1;
    }
    await this.findAgain(job, part, options, (second) => this.wrongPlaceholders(second) < this.wrongPlaceholders(part));
  }

  /** How many symbols of its source an output lacks, and how many it has besides. */
  wrongPlaceholders({ ids, found }) {
    const [wanted, there] = [ids, found[0].ids].map((one) => counter(one.filter(isSymbolId)));
    return surplus(wanted, there).length + surplus(there, wanted).length;
  }

  /** Where an output repeats itself, takes one that does not, if it is good enough. */
  async breakLoop(job, part, options) {
    const { limit } = this.header.facts, loops = (one) => isLoop(this.outputOf(one), part.text, limit);
    if (!loops(part)) return;
    job.looped = true;
    await this.findAgain(job, part, { ...options, noRepeat: this.header.loop_size }, (second) => !loops(second));
  }

  async findAgain(job, part, options, accepts) {
    const size = part.phrases && options.size === 1 ? this.header.decoding.beam_size : options.size;
    const second = { ...part };
    second.found = await this.find(second, { ...options, size });
    if (this.isBetter(second, part) && accepts(second)) {
      Object.assign(part, { found: second.found });
      job.repaired = true;
    }
  }

  /** Whether a second output may take the place of the first one. */
  isBetter(second, first) {
    const [now, before] = [second, first].map((one) => counter(one.found[0].ids.filter(isSymbolId)));
    const wanted = counter(first.ids.filter(isSymbolId));
    const kept = new Map([...wanted].map(([id, count]) => [id, Math.min(count, before.get(id) ?? 0)]));
    const { facts, characters, expected } = this.header;
    const numbers = (one) => (facts.keeps_numbers ? lostNumbers(first.text, this.outputOf(one), characters.zeros, expected).length : 0);
    const isEnded = second.found[0].ids.length + 1 < this.limitOf(first);
    const perToken = (one) => one.found[0].logProb / (one.found[0].ids.length + 1);
    if (surplus(kept, now).length || this.wrongPlaceholders(second) > this.wrongPlaceholders(first) || numbers(second) > numbers(first)) return false;
    return isEnded && Boolean(this.outputOf(second)) && perToken(second) >= perToken(first) - this.header.margin;
  }

  result(job, text) {
    const { masked } = job, unmask = (one) => masked.unmask(one, this.letter);
    const sum = (values) => values.reduce((total, one) => total + one, 0);
    const best = job.parts.map((part) => part.found[0]), logProb = sum(best.map((one) => one.logProb));
    const source = masked.unmask(masked.text, this.letter), { expected } = this.header, output = job.parts.length ? unmask(text) : text;
    const read = [...(job.unread ?? []), ...job.parts.map((part) => part.text)].join(" ");
    const { unknown, share } = this.src.unknown(withoutPlaceholders(read, expected));
    return {
      text: output,
      score: sum(best.map((one) => one.score)),
      logProb,
      confidence: (1 - share) * Math.exp(logProb / (sum(best.map((one) => one.ids.length)) + 1)),
      parts: job.parts.map((part) => ({
        source: [...part.ids, EOS].map((id) => unmask(this.src.pieces[id])),
        pieces: [...part.found[0].ids, EOS].map((id) => unmask(this.tgt.pieces[id])),
        probabilities: part.found[0].gains.map(Math.exp),
        sourceIds: part.ids,
        ids: part.found[0].ids,
        others: part.found.slice(1, 5).map((one) => ({ text: unmask(job.restore(clean(this.tgt.decode(one.ids)))), score: one.score })),
      })),
      lost: job.parts.length ? surplus(counter(placeholders(source, expected)), counter(placeholders(output, expected))) : [],
      unknown,
      repaired: job.repaired,
      looped: job.looped,
      cut: job.cut,
    };
  }

  /** The attention of one part, (T, S): the mean over all layers and heads of what each output piece looked at. */
  attention(sourceIds, ids) {
    const src = [...sourceIds, EOS], rows = ids.length + 1, sum = new Float32Array(rows * src.length);
    let count = 0;
    const isAcross = Boolean(this.model.encoder);
    this.model.look = (name, weights, [heads, queries, columns]) => {
      if (!name.endsWith(isAcross ? ".cross_attn.weights" : ".self_attn.weights") || name.startsWith("encoder.")) return;
      const skipped = queries - rows; // a decoder-only model reads the source as well
      for (let head = 0; head < heads; head++)
        for (let row = 0; row < rows; row++)
          for (let s = 0; s < src.length; s++) sum[row * src.length + s] += weights[(head * queries + row + skipped) * columns + s];
      count += heads;
    };
    try {
      this.model.forward(src, [BOS, ...ids]);
    } finally {
      this.model.look = null;
    }
    return Array.from({ length: rows }, (_, row) => [...sum.subarray(row * src.length, (row + 1) * src.length)].map((one) => one / count));
  }
}

const setOfRanges = (ranges) => new Set(ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i)));

/** A text without letters as it is, unless it has control characters or half characters. */
const printable = (text) => (/[\p{Cc}\p{Cs}]/u.test(text) ? clean(text) : text);

/** Whether a word may begin at a place, as far as no dictionary is needed: Unicode's rules, and no cut in a syllable. */
function isBetweenWords(sentence, place, { complex, joiner, killer }) {
  const is = (pattern, one) => one !== undefined && new RegExp(`^${pattern}$`, "u").test(one);
  const [before, after] = [sentence[place - 1], sentence[place]];
  if (is("[\\p{Ps}\\p{Pi}\\p{Logical_Order_Exception}]", before) || is(joiner, before) || is("\\p{P}", after)) return false;
  let next = place + 1;
  while (is("(?![\\u102b\\u102c])\\p{M}", sentence[next])) next++; // a Burmese vowel may end in a killer
  if (is(killer, sentence[next])) return false;
  const isMark = (one) => is("[\\p{M}\\p{Cf}\\p{EMod}]", one);
  if (isMark(after)) return false;
  let last = place - 1; // marks belong to what is before them
  while (last > 0 && isMark(sentence[last])) last--;
  const kind = (one) => {
    if (is("\\p{Script=Katakana}|[ー・]", one)) return "katakana";
    if (is("\\p{Nd}|\\p{Pc}", one)) return "letter";
    return is("\\p{Alphabetic}", one) && !is(complex, one) && !is("[\\p{Ideographic}\\p{Script=Hiragana}]", one) ? "letter" : "";
  };
  return !kind(sentence[last]) || kind(sentence[last]) !== kind(after);
}

/** Texts from a language model: see engine/generator.py. */
class Generator extends Machine {
  async continue(beginning, settings = {}) {
    const prefix = this.tgt.encode(beginning), longest = this.model.config.max_seq_len;
    const limit = Math.min(settings.max_pieces ?? longest, longest);
    const problem =
      prefix.length >= limit ? `the beginning has ${prefix.length} pieces, but a text has at most ${limit - 1}`
      : prefix.includes(UNK) ? "the beginning has a character or a word that is not in the vocabulary" : "";
    if (problem) return { text: clean(beginning), problem, pieces: [], probabilities: [], ended: false, given: 0 };
    const task = { limit, prefix, key: settings.key ?? "0" };
    const [{ ids, gains, logProb }] = await this.search([], task, this.searchOptions(settings));
    return {
      text: clean(this.tgt.decode(ids)), problem, logProb, ids,
      pieces: [...ids, EOS].map((id) => this.tgt.pieces[id]),
      probabilities: gains.map(Math.exp),
      given: prefix.length,
      ended: ids.length + 1 < limit,
    };
  }

  /** The log-probability of a whole text, its end included, and the number of its pieces; none if it is too long. */
  score(text) {
    const ids = [...this.tgt.encode(text), EOS];
    if (ids.length > this.model.config.max_seq_len) return { pieces: 0, logProb: 0 };
    const rows = this.model.forward([], [BOS, ...ids.slice(0, -1)]).map(logSoftmax);
    return { pieces: ids.length, logProb: rows.reduce((sum, row, i) => sum + row[ids[i]], 0) };
  }
}

/** Texts to vectors: see engine/embedder.py. */
class Embedder extends Machine {
  /** The vector of a text, of length 1; zeros for a blank one. */
  vector(text) {
    const ids = this.src.encode(this.mask(text).text), most = this.model.config.max_seq_len - 1;
    return ids.length ? this.model.vector([...ids.slice(0, most), EOS]) : new Float32Array(this.model.config.d_model);
  }
}

const MACHINES = { translator: Translator, "language model": Generator, "sentence encoder": Embedder };

// --- session ---

const TURN = 40; // milliseconds after which a search lets messages in

/** One machine and the work that it is asked for. `answer(message)` takes what it has to say. */
class Session {
  constructor(answer) {
    Object.assign(this, { answer, machine: null, current: null, turn: 0 });
  }

  /** Takes a message { kind, id, .. }; each is answered by messages with its id, of which the last is `done` or `failed`. */
  async take(message) {
    try {
      if (message.kind === "stop") this.current = null;
      else await this[message.kind](message);
    } catch (error) {
      const kind = error instanceof Stopped ? "stopped" : "failed";
      this.answer({ kind, id: message.id, error: String(error.message || error) });
    }
  }

  async open({ id, model }) {
    const packed = await unpacked(typeof model === "string" ? bytesOfBase85(model) : model);
    const Kind = MACHINES[packed.header.purpose];
    this.machine = new Kind(packed);
    this.machine.pause = () => this.pause();
    const { tensors, phrases, characters, ...about } = packed.header;
    this.answer({ kind: "done", id, about });
    await this.machine.warmUp();
  }

  /** Does something for each of many texts, and says each as it comes. */
  async each({ id, texts }, work) {
    const mine = (this.current = { id });
    for (let number = 0; number < texts.length; number++) {
      await this.pause();
      if (this.current !== mine) throw new Stopped("stopped");
      const started = performance.now(), result = await work(texts[number], number);
      this.answer({ kind: "one", id, number, result, milliseconds: performance.now() - started });
    }
    this.answer({ kind: "done", id });
  }

  translate(message) {
    return this.each(message, (text) => this.machine.translate(text, message.settings));
  }

  continue(message) {
    return this.each(message, (text, number) => this.machine.continue(text, { ...message.settings, key: String(number) }));
  }

  scores(message) {
    return this.each(message, (text) => this.machine.score(text));
  }

  vectors(message) {
    return this.each(message, (text) => [...this.machine.vector(text)]);
  }

  attention({ id, source, ids }) {
    this.answer({ kind: "done", id, weights: this.machine.attention(source, ids) });
  }

  /** Lets messages in from time to time. */
  async pause() {
    const now = performance.now(), mine = this.current;
    if (now - this.turn < TURN) return;
    await new Promise((go) => setTimeout(go));
    this.turn = performance.now();
    if (this.current !== mine) throw new Stopped("stopped");
  }
}

/** In node: messages as lines of JSON, the model being the path of a packed file. */
function inNode() {
  const { readFileSync } = require("node:fs"), lines = require("node:readline").createInterface({ input: process.stdin });
  const session = new Session((message) => process.stdout.write(JSON.stringify(message) + "\n"));
  let last = Promise.resolve();
  lines.on("line", (line) => {
    const message = JSON.parse(line);
    if (message.kind === "open") message.model = readFileSync(message.model);
    last = last.then(() => session.take(message));
  });
}

if (typeof module === "object" && module.exports) {
  module.exports = {
    Embedder, Multiplier, bytesOfBase85, Generator, Masked, Session, Transformer, Translator, Vocabulary, clean, cutSentence, drawn, erf, hasWords, inUsualForm, isBetweenWords,
    isLoop, joinTexts, linear, lostNumbers, placeholders, restricted, sentencesOf, splitText, unpacked, REGEX_WORD, WORD,
  };
  if (require.main === module) inNode();
} else if (typeof WorkerGlobalScope === "function" && self instanceof WorkerGlobalScope) {
  const session = new Session((message) => self.postMessage(message));
  self.onmessage = ({ data }) => session.take(data);
}
