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
/** @typedef {"" | "live" | "reconnecting" | "offline"} LiveState - "offline" where the server sends no changes */

/**
 * Call `onChange` after each change of a tree while the page is in view, until `signal` aborts. A browser has six
 * connections to a host for all its tabs, so a tab that is hidden has none, and continues where it was when it is shown.
 * @param {Api} api @param {string} hierarchy @param {string} tree path of its root
 * @param {() => void} onChange @param {AbortSignal} signal @param {(state: LiveState) => void} onState
 */
export function follow(api, hierarchy, tree, onChange, signal, onState) {
  const place = { last: "" };
  let end = new AbortController();
  let isBehind = false;
  const turn = () => {
    end.abort();
    const isHidden = document.visibilityState !== "visible";
    if (!isHidden) end = new AbortController();
    if (!isHidden && isBehind && !place.last) onChange(); // what was changed while it was hidden is not known
    isBehind ||= isHidden;
    if (!isHidden) read(api, { hierarchy, tree }, place, onChange, end.signal, onState);
  };
  signal.addEventListener("abort", () => end.abort());
  document.addEventListener("visibilitychange", turn, { signal });
  turn();
}

/**
 * Read the stream of a tree until `signal` aborts, or the server refuses.
 * @param {Api} api @param {{hierarchy: string, tree: string}} variables @param {{last: string}} place after which to continue
 * @param {() => void} onChange @param {AbortSignal} signal @param {(state: LiveState) => void} onState
 */
async function read(api, variables, place, onChange, signal, onState) {
  const body = JSON.stringify({ query: DOCUMENT, variables });
  for (let wait = MIN_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    const { last } = place;
    const headers = { ...api.headers(), accept: EVENT_STREAM, ...(last && { "last-event-id": last }) };
    let isRefused = false;
    try {
      const response = await fetch(api.url, { method: "POST", headers, body, signal });
      const isStream = response.headers.get("content-type")?.startsWith(EVENT_STREAM);
      isRefused = !isStream && response.status < 500;
      if (isStream) onState("live");
      for await (const { id, event, data } of isStream && response.body ? eventsOf(response.body) : []) {
        place.last = id ?? place.last;
        isRefused = event === "complete";
        if (isRefused) break;
        if (data && JSON.parse(data).data?.changes?.changes.length) onChange();
        wait = MIN_WAIT_MS;
      }
    } catch {
      // The connection was lost, or the signal ended it.
    }
    if (signal.aborted) return;
    onState(isRefused && !place.last ? "offline" : "reconnecting");
    if (isRefused && !place.last) return;
    if (isRefused) {
      place.last = ""; // the log does not go back so far, or the key has expired
      onChange();
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
