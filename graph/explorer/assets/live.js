// Changes of others, as they are made: the subscription `changes` over server-sent events (GraphQL over SSE, distinct
// connections). EventSource sends no key, so the stream is read by fetch.

/** @import { Api } from "./api" */

const MIN_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
const EVENT_STREAM = "text/event-stream";
const DOCUMENT = `subscription Changes($hierarchy: HierarchyName!, $tree: Path!) {
  changes(hierarchy: $hierarchy, tree: $tree) { changes { event path } }
}`;

/** @typedef {{id?: string, event?: string, data?: string}} StreamEvent */

/**
 * Call `onChange` after each change of a tree, until `signal` aborts. It ends by itself where the server refuses.
 * @param {Api} api @param {string} hierarchy @param {string} tree path of its root
 * @param {() => void} onChange @param {AbortSignal} signal
 */
export async function follow(api, hierarchy, tree, onChange, signal) {
  const body = JSON.stringify({ query: DOCUMENT, variables: { hierarchy, tree } });
  let last = "";
  for (let wait = MIN_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    const headers = { ...api.headers(), accept: EVENT_STREAM, ...(last && { "last-event-id": last }) };
    try {
      const response = await fetch(api.url, { method: "POST", headers, body, signal });
      const isStream = response.headers.get("content-type")?.startsWith(EVENT_STREAM);
      if (!response.body || (!isStream && response.status < 500)) return;
      for await (const { id, event, data } of isStream ? eventsOf(response.body) : []) {
        last = id ?? last;
        if (event === "complete") return;
        if (data && JSON.parse(data).data?.changes?.changes.length) onChange();
        wait = MIN_WAIT_MS;
      }
    } catch {
      // The connection was lost, or the signal ended it.
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** The events of a stream. @param {ReadableStream<Uint8Array>} body @returns {AsyncGenerator<StreamEvent>} */
async function* eventsOf(body) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const blocks = (text + part.value).split("\n\n");
    text = /** @type {string} */ (blocks.pop());
    for (const block of blocks) {
      const lines = block.split("\n").map((line) => /^(\w+): ?(.*)$/.exec(line)).filter((found) => found !== null);
      yield Object.fromEntries(lines.map(([, name, value]) => [name, value]));
    }
  }
}
