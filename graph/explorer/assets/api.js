// The GraphQL API as the page uses it: one request at a time, errors as sentences, and what each request cost.

/** @typedef {import("./types").HierarchiesQuery["hierarchies"][number]} Hierarchy */
/** @typedef {{operation: string, index: string, round: number, items: number, units: number, limit?: number,
 *   keyCondition?: string, keys?: string[], moreKeys?: number}} StoreCall */
/** @typedef {{requests: number, rounds: number, items: number, units: number, cached: boolean, calls?: StoreCall[],
 *   moreCalls?: number, fromCache?: {pages: number, records: number}}} Reads */
/** @typedef {{message: string, path?: (string | number)[], extensions?: {code?: string}}} GraphQLError */
/** A request; its times are in milliseconds.
 * @typedef {{document: string, variables: Record<string, unknown>, reads: Reads | null, begun: number, ended: number}} Call */

/** @template T @typedef {{data: T, errors: GraphQLError[], reads: Reads | null}} Answer */

const MAX_SECONDS = 30;
const ACCEPT = "application/graphql-response+json, application/json;q=0.9";

/** A request without data: `message` is a sentence, `code` that of GraphQL or "UNREACHABLE", `status` of HTTP or 0. */
export class ApiError extends Error {
  /** @param {string} message @param {string} code @param {number} [status] */
  constructor(message, code, status = 0) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

export class Api {
  #isNew = false;

  /** @param {string} url of the GraphQL endpoint @param {() => void} [onCall] called after each answer */
  constructor(url, onCall = () => {}) {
    this.url = url;
    this.onCall = onCall;
    /** An API key or a token, in memory alone. */
    this.credential = "";
    /** @type {Call[]} the requests of the last click. */
    this.calls = [];
  }

  /** Begin a new click: its requests take the place of those of the one before. */
  begin() {
    this.#isNew = true;
  }

  /** Headers of a request to the server. Throws ApiError. @returns {Record<string, string>} */
  headers() {
    if (!/^[\x21-\x7e]*$/.test(this.credential)) {
      throw new ApiError("The key has characters that no key has; copy it again.", "UNAUTHENTICATED");
    }
    const own = { "content-type": "application/json", accept: ACCEPT, "clade-reads": "2" };
    return this.credential ? { ...own, authorization: `Bearer ${this.credential}` } : own;
  }

  /**
   * The answer to a document. Throws ApiError where there is no data; errors of single fields are in `errors`.
   * @param {string} document @param {Record<string, unknown>} [variables]
   * @returns {Promise<Answer<any>>}
   */
  async ask(document, variables = {}) {
    if (this.#isNew) this.calls = [];
    this.#isNew = false;
    const { calls } = this;
    const begun = performance.now();
    const { status, answer } = await this.#send(JSON.stringify({ query: document, variables }));
    const errors = answer.errors ?? [];
    const reads = answer.extensions?.reads ?? null;
    calls.push({ document, variables, reads, begun, ended: performance.now() });
    this.onCall();
    if (!answer.data) {
      const { message = `The server answered with HTTP status ${status}.`, extensions } = errors[0] ?? {};
      throw new ApiError(message, extensions?.code ?? "REJECTED", status);
    }
    return { data: answer.data, errors, reads };
  }

  /** @param {string} body */
  async #send(body) {
    const headers = this.headers();
    let response;
    try {
      const signal = AbortSignal.timeout(MAX_SECONDS * 1000);
      response = await fetch(this.url, { method: "POST", headers, body, signal });
    } catch (error) {
      const late = error instanceof DOMException && error.name === "TimeoutError";
      const fact = late ? `The server did not answer within ${MAX_SECONDS} seconds` : "The server cannot be reached";
      throw new ApiError(`${fact}; try again.`, "UNREACHABLE");
    }
    try {
      return { status: response.status, answer: await response.json() };
    } catch {
      throw new ApiError(`The server answered with HTTP status ${response.status} and no JSON.`, "REJECTED", response.status);
    }
  }
}
