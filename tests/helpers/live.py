"""What a live page of `tfm explain` computes for a sentence, in node."""

import base64
from typing import Any

import numpy as np
from helpers.javascript import javascript

from tfm.engine.browser.pack import pack
from tfm.engine.explain.page import engine_text
from tfm.engine.runs.load import TrainedRun

BODY = """
  const path = require("node:path").join(fs.mkdtempSync(require("node:os").tmpdir() + "/live"), "engine.js");
  fs.writeFileSync(path, data.engine);
  const live = require(path), answers = [];
  const session = new live.Session((message) => answers.push(message));
  await session.open({ id: 0, model: new Uint8Array(Buffer.from(data.packed, "base64")) });
  await session.take({ kind: "explain", id: 1, text: data.text, experiment: data.experiment });
  const failed = answers.find((one) => one.kind === "failed");
  if (failed) return failed;
  const [first, last] = answers.slice(-2).map((one) => one.result), found = { ...first, ...last };
  if (data.restricted) {
    await session.take({ kind: "restricted", id: 2, ...data.restricted });
    found.restricted = answers.at(-1).result;
  }
  const number = (x) => (x === -Infinity ? -1e300 : x);
  for (const one of Object.values(found.arrays)) one.values = [...one.values].map(number);
  return found;"""


def live(loaded: TrainedRun, text: str, experiment: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """What the page finds; its arrays are NumPy's."""
    packed = base64.b64encode(pack(loaded, "float32")).decode()
    data = {"engine": engine_text(), "packed": packed, "text": text, "experiment": experiment, **more}
    found = javascript(BODY, data)
    for name, one in found.get("arrays", {}).items():
        values = np.array(one["values"], dtype=np.float64).reshape(one["shape"])
        found["arrays"][name] = np.where(values < -1e200, -np.inf, values)
    return found
