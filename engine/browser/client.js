"use strict";
// A page's side of the engine, which works in a worker, so that the page never waits for it.

/** Starts the engine from its source text. `fail` hears what stops all of it. */
function openEngine(text, fail) {
  const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data }) => {
    const one = waiting.get(data.id);
    if (!one) return;
    if (data.kind === "one") return one.onOne(data);
    waiting.delete(data.id);
    if (data.kind === "done") one.resolve(data);
    else one.reject(Object.assign(new Error(data.error), { isStop: data.kind === "stopped" }));
  };
  worker.onerror = (event) => fail(event.message);
  return {
    /** Asks for work; `onOne` hears each result as it comes. */
    ask(message, onOne = () => {}) {
      const id = ++last;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject, onOne });
        worker.postMessage({ ...message, id });
      });
    },
    stop: () => worker.postMessage({ kind: "stop" }),
  };
}
