// The GraphQL API as the page uses it: answers that are whole, errors as sentences, what each request cost, and the
// changes of others as they are made.

/** @typedef {{operation: string, index: string, round?: number, items: number, units: number, limit?: number,
 *   keyCondition?: string, keys?: string[], moreKeys?: number}} StoreCall */
/** @typedef {{requests: number, rounds?: number, items: number, units: number, cached: boolean, calls?: StoreCall[],
 *   moreCalls?: number, fromCache?: {pages: number, records: number}}} Reads */
/** @typedef {{message: string, path?: (string | number)[], extensions?: {code?: string, uncertain?: boolean}}} GraphQLError */
/** A request; its times are in milliseconds.
 * @typedef {{document: string, variables: Record<string, unknown>, reads: Reads | null, begun: number, ended: number}} Call */
/** @typedef {{data: any, errors: GraphQLError[]}} Answer */
/** Whether an answer is useful in spite of an error in it. @typedef {(error: GraphQLError) => boolean} Expected */
/** @typedef {{id?: string, event?: string, data?: string}} StreamEvent */

const MAX_SECONDS = 30;
const ACCEPT = "application/graphql-response+json, application/json;q=0.9";
const EVENT_STREAM = "text/event-stream";
const [MIN_WAIT_MS, MAX_WAIT_MS] = [1_000, 60_000]; // after the end of a stream

const CHANGES = `subscription Changes($hierarchy: HierarchyName!, $tree: Path!) {
  changes(hierarchy: $hierarchy, tree: $tree) { changes { event path } }
}`;

export class Api {
  #isNew = false;

  /** @param {string} url of the GraphQL endpoint @param {() => void} [onCall] called after each answer */
  constructor(url, onCall = () => {}) {
    this.url = url;
    this.onCall = onCall;
    /** An API key or a token, in memory alone. */
    this.credential = "";
    /** How many requests were refused for want of a key that the server knows. */
    this.refusals = 0;
    /** @type {Call[]} the requests of the last click. */
    this.calls = [];
  }

  /** Begin a new click: its requests take the place of those of the one before. */
  begin() {
    this.#isNew = true;
  }

  /**
   * The answer to a document. Throws ApiError if anything in it is missing because of an error; errors that are
   * `expected` are in the answer.
   * @param {string} document @param {Record<string, unknown>} [variables] @param {Expected} [expected]
   * @returns {Promise<Answer>}
   */
  async ask(document, variables = {}, expected = () => false) {
    if (this.#isNew) this.calls = [];
    this.#isNew = false;
    const { calls } = this;
    const begun = performance.now();
    const { status, answer } = await this.#send(JSON.stringify({ query: document, variables }));
    const errors = answer.errors ?? [];
    calls.push({ document, variables, reads: answer.extensions?.reads ?? null, begun, ended: performance.now() });
    const wrong = errors.find((/** @type {GraphQLError} */ error) => !expected(error));
    if (wrong?.extensions?.code === "UNAUTHENTICATED") this.refusals += 1;
    this.onCall();
    if (wrong || (!answer.data && !errors.length)) {
      const { message = `The server answered with HTTP status ${status}.`, extensions } = wrong ?? {};
      throw new ApiError(message, extensions?.code ?? "REJECTED", Boolean(extensions?.uncertain));
    }
    return { data: answer.data ?? {}, errors };
  }

  /**
   * Call `onChange` after each change of a tree while the page is in view, until `signal` aborts. A browser has six
   * connections to a host for all its tabs, so a tab that is hidden has none, and continues where it was when it is shown.
   * @param {string} hierarchy @param {string} tree path of its root
   * @param {() => void} onChange @param {AbortSignal} signal
   */
  follow(hierarchy, tree, onChange, signal) {
    const place = { last: "" };
    let end = new AbortController();
    let isBehind = false;
    const turn = () => {
      end.abort();
      const isHidden = document.visibilityState !== "visible";
      if (!isHidden) end = new AbortController();
      if (!isHidden && isBehind && !place.last) onChange(); // what was changed while it was hidden is not known
      isBehind ||= isHidden;
      if (!isHidden) this.#read({ hierarchy, tree }, place, onChange, end.signal);
    };
    signal.addEventListener("abort", () => end.abort());
    document.addEventListener("visibilitychange", turn, { signal });
    turn();
  }

  /** @param {string} body */
  async #send(body) {
    const headers = this.#headers();
    let response, text;
    try {
      const signal = AbortSignal.timeout(MAX_SECONDS * 1000);
      response = await fetch(this.url, { method: "POST", headers, body, signal });
      text = await response.text();
    } catch (error) {
      const late = error instanceof DOMException && error.name === "TimeoutError";
      const fact = late ? `The server did not answer within ${MAX_SECONDS} seconds` : "The server cannot be reached";
      throw new ApiError(`${fact}; try again.`, "UNREACHABLE");
    }
    try {
      return { status: response.status, answer: parsedJson(text) };
    } catch {
      throw new ApiError(`The server answered with HTTP status ${response.status} and no JSON.`, "REJECTED");
    }
  }

  /** Headers of a request to the server. Throws ApiError. @returns {Record<string, string>} */
  #headers() {
    if (!/^[\x21-\x7e]*$/.test(this.credential)) {
      this.refusals += 1;
      throw new ApiError("The key has characters that no key has; copy it again.", "UNAUTHENTICATED");
    }
    const own = { "content-type": "application/json", accept: ACCEPT, "clade-reads": "2" };
    return this.credential ? { ...own, authorization: `Bearer ${this.credential}` } : own;
  }

  /**
   * Read the stream of a tree (GraphQL over SSE, distinct connections) until `signal` aborts, or the server refuses.
   * EventSource sends no key, so it is read by fetch.
   * @param {{hierarchy: string, tree: string}} variables @param {{last: string}} place after which to continue
   * @param {() => void} onChange @param {AbortSignal} signal
   */
  async #read(variables, place, onChange, signal) {
    const body = JSON.stringify({ query: CHANGES, variables });
    for (let wait = MIN_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
      const { last } = place;
      const headers = { ...this.#headers(), accept: EVENT_STREAM, ...(last && { "last-event-id": last }) };
      let isRefused = false;
      try {
        const response = await fetch(this.url, { method: "POST", headers, body, signal });
        const isStream = response.headers.get("content-type")?.startsWith(EVENT_STREAM);
        isRefused = !isStream && response.status < 500;
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
      if (isRefused && !place.last) return;
      if (isRefused) {
        place.last = ""; // the log does not go back so far, or the key has expired
        onChange();
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/**
 * A request without its data: `message` is a sentence, `code` that of GraphQL or "UNREACHABLE", `isUncertain` whether a
 * mutation may have been made.
 */
class ApiError extends Error {
  /** @param {string} message @param {string} code @param {boolean} [isUncertain] */
  constructor(message, code, isUncertain = false) {
    super(message);
    this.code = code;
    this.isUncertain = isUncertain;
  }
}

/** What stands in an answer instead of the value of a field that failed. */
export class Failure {
  /** @param {string} message */
  constructor(message) {
    this.message = message;
  }
}

/** @param {unknown} error @returns {string} */
export const sentence = (error) => (error instanceof ApiError ? error.message : `The page failed: ${error}`);

// A string of JSON, which is left as it is, or a number.
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const LONG_NUMBER = /^-?\d{16,}$/; // from 2^53 on, numbers of JavaScript are rounded

/**
 * The value of a text of JSON, in which some numbers are texts: by default integers of 16 digits or more.
 * @param {string} text @param {(numeral: string) => boolean} [isText] @returns {any}
 */
export const parsedJson = (text, isText = (numeral) => LONG_NUMBER.test(numeral)) =>
  JSON.parse(text.replace(STRING_OR_NUMBER, (part) => (!part.startsWith('"') && isText(part) ? `"${part}"` : part)));

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
