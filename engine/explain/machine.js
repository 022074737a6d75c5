"use strict";
// The picture of the whole machine: each part is a way to its station.

/** The parts of a stack from the bottom up: { text, station }, those inside a layer in a list of their own. */
function partsOf(stack, embedding, crosses, first) {
  const layer = `${stack}.layers.{layer}`, isPre = data.config.norm_order === "pre", isMasked = stack === "decoder";
  const around = (module, text, station) => [
    ...(isPre ? [{ text: "Norm", station: `${module}_residual-norm` }] : []),
    { text, station }, { text: isPre ? "Add" : "Add & norm", station: `${module}_residual-residual` },
  ];
  const own = `${layer}.self_attn`, cross = `${layer}.cross_attn`;
  const inside = [
    ...around(own, isMasked ? "Masked self-attention" : "Self-attention", crosses ? `${own}-mask` : `${own}-qkv`),
    ...(crosses ? around(cross, "Cross-attention", `${cross}-qkv`) : []),
    ...around(`${layer}.feed_forward`, "Feed-forward", `${layer}.feed_forward-ff`),
  ];
  const added = data.stations.some((one) => one.id === `${embedding}-positions`) ? [{ text: "+ positions", station: `${embedding}-positions` }] : [];
  return [{ text: first, station: "pieces" }, { text: "Embedding", station: `${embedding}-tokens` }, ...added, inside];
}

const BOX = { width: 176, height: 24, gap: 7, left: 30, apart: 34 };

/** The machine as a picture; information goes from the bottom up, as in the paper. */
function machine() {
  const { encoder, decoder } = data.layers, isPair = encoder > 0 && decoder > 0;
  const ends = decoder
    ? [{ text: "Output layer: logits", station: "logits" }, { text: "Softmax", station: "probabilities" }, { text: "The choice", station: "choice" }]
    : [{ text: "One vector", station: "vector" }];
  const columns = isPair
    ? [{ layers: encoder, parts: partsOf("encoder", "src_embedding", false, "Text to pieces") },
       { layers: decoder, parts: [...partsOf("decoder", "tgt_embedding", true, "What is written so far"), ...ends] }]
    : [{ layers: encoder || decoder, parts: [...partsOf(encoder ? "encoder" : "decoder", "embedding", false, "Text to pieces"), ...ends] }];
  const flat = columns.map(({ parts }) => parts.flat()), step = BOX.height + BOX.gap;
  const height = Math.max(...flat.map((parts) => parts.length)) * step + 24, width = columns.length * (BOX.width + BOX.apart) + 2 * BOX.left - BOX.apart + 26;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "machine", role: "group", "aria-label": "The whole machine, from the text at the bottom to the result at the top; each part leads to its station" });
  picture.style.maxWidth = `${width * 1.1}px`;
  const top = (row) => height - 14 - BOX.height - row * step;
  columns.forEach(({ layers, parts }, number) => {
    const x = BOX.left + number * (BOX.width + BOX.apart), first = parts.findIndex(Array.isArray), count = parts[first].length;
    const frame = { x: x - 9, y: top(first + count - 1) - 5, width: BOX.width + 18, height: count * step + 1, rx: 9 };
    picture.append(svg("rect", { class: "frame", ...frame }), svg("text", { class: "times", x: number || !isPair ? frame.x + frame.width + 5 : frame.x - 3, y: frame.y + 14, ...(number || !isPair ? {} : { "text-anchor": "end" }) }, layers > 1 ? `×${layers}` : ""));
    flat[number].forEach(({ text, station }, row) => {
      if (row) picture.append(svg("path", { class: "flow", d: `M ${x + BOX.width / 2} ${top(row - 1)} v ${-BOX.gap}` }));
      const box = [svg("rect", { class: "part", x, y: top(row), width: BOX.width, height: BOX.height, rx: 6 }), svg("text", { x: x + BOX.width / 2, y: top(row) + 16.5, "text-anchor": "middle" }, text)];
      const target = data.stations.find((one) => one.id === station);
      picture.append(target ? svg("a", { href: `#${anchor(target)}`, "aria-label": `${text}: ${target.title}` }, ...box) : svg("g", {}, ...box));
    });
    picture.append(svg("g"));
  });
  if (isPair) {
    const [from, to] = [flat[0].length - 1, flat[1].findIndex((one) => one.text === "Cross-attention")].map(top), middle = BOX.left + BOX.width + BOX.apart / 2;
    picture.append(svg("path", { class: "flow", d: `M ${BOX.left + BOX.width / 2} ${from} v -12 H ${middle} V ${to + 13} H ${BOX.left + BOX.width + BOX.apart}` }));
  }
  return picture;
}
