// Questions to the worker, and their answers.

// Milliseconds that an answer may take before the worker is ended. A comparison plays hundreds of runs.
const patience = { play: 30000, compare: 180000, catalog: 60000 };

const policy = globalThis.trustedTypes?.createPolicy("quorate-lab", {
  createScriptURL: (name) => {
    if (name !== "worker.js") {
      throw new TypeError("the laboratory has one worker");
    }
    return new URL(name, import.meta.url).href;
  },
});

let worker = null;
let last = 0;
const waiting = new Map(); // id -> how to end the question

function begin() {
  worker = new Worker(policy ? policy.createScriptURL("worker.js") : new URL("worker.js", import.meta.url), { type: "module" });
  worker.addEventListener("message", ({ data }) => {
    const ends = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.died) {
      fail(data.died);
      ends?.fail(new Error(`The laboratory could not start: ${data.died}.`));
      return;
    }
    ends?.done(data.text);
  });
  worker.addEventListener("error", (event) => {
    fail(event.message || "worker.js, wasm_exec.js or lab.wasm.gz is missing beside the page");
  });
}

// fail ends the worker, and all questions that wait for it.
function fail(why) {
  worker?.terminate();
  worker = null;
  for (const ends of waiting.values()) {
    ends.fail(new Error(`The laboratory could not start: ${why}.`));
  }
  waiting.clear();
}

// ask returns the answer to a question, or throws an Error with a sentence.
export async function ask(question, argument = "") {
  if (!worker) {
    begin();
  }
  const id = ++last;
  const text = await new Promise((done, failed) => {
    const timer = setTimeout(() => {
      waiting.delete(id);
      worker?.terminate();
      worker = null;
      failed(new Error("This run takes too long for a browser, and was ended. A shorter delay or fewer faults help."));
    }, patience[question]);
    const clear = (then) => (value) => {
      clearTimeout(timer);
      then(value);
    };
    waiting.set(id, { done: clear(done), fail: clear(failed) });
    worker.postMessage({ id, question, argument });
  });
  const answer = JSON.parse(text);
  if (answer.error) {
    throw new Error(sentence(answer.error));
  }
  return answer;
}

// sentence begins with a capital letter and ends with a stop.
function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.?!]$/.test(whole) ? whole : whole + ".";
}
