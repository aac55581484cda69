// The worker runs the laboratory's own code, compiled to WebAssembly, and answers the page's questions.
import "./wasm_exec.js"; // of Go's distribution: it sets Go

// program reads the compiled program. A server may or may not have undone the compression.
async function program() {
  const answer = await fetch(new URL("lab.wasm.gz", import.meta.url));
  if (!answer.ok) {
    throw new Error(`lab.wasm.gz: the server answers ${answer.status}`);
  }
  let bytes = await answer.arrayBuffer();
  const head = new Uint8Array(bytes, 0, 2);
  if (head[0] === 0x1f && head[1] === 0x8b) {
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    bytes = await new Response(plain).arrayBuffer().catch(() => {
      throw new Error("lab.wasm.gz is damaged");
    });
  }
  return bytes;
}

async function start() {
  const go = new globalThis.Go();
  const { instance } = await WebAssembly.instantiate(await program(), go.importObject);
  go.run(instance).then(() => self.postMessage({ died: "the laboratory's program has ended" }));
}

const ready = start();

self.addEventListener("message", async (event) => {
  const { id, question, argument } = event.data;
  try {
    await ready;
    self.postMessage({ id, text: globalThis.quorateLab(question, argument) });
  } catch (error) {
    self.postMessage({ id, died: String(error.message || error) });
  }
});
