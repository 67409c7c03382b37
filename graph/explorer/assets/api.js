// The GraphQL API as the page uses it: answers that are whole, errors as sentences, and what each request cost.

/** @typedef {import("./types").HierarchiesQuery["hierarchies"][number]} Hierarchy */
/** @typedef {{operation: string, index: string, round: number, items: number, units: number, limit?: number,
 *   keyCondition?: string, keys?: string[], moreKeys?: number}} StoreCall */
/** @typedef {{requests: number, rounds: number, items: number, units: number, cached: boolean, calls?: StoreCall[],
 *   moreCalls?: number, fromCache?: {pages: number, records: number}}} Reads */
/** @typedef {{message: string, path?: (string | number)[], extensions?: {code?: string, uncertain?: boolean}}} GraphQLError */
/** A request; its times are in milliseconds.
 * @typedef {{document: string, variables: Record<string, unknown>, reads: Reads | null, begun: number, ended: number}} Call */

/** @template T @typedef {{data: T, errors: GraphQLError[], reads: Reads | null}} Answer */
/** Whether an answer is useful in spite of an error in it. @typedef {(error: GraphQLError) => boolean} Expected */

const MAX_SECONDS = 30;
const ACCEPT = "application/graphql-response+json, application/json;q=0.9";

const MISSING_CREDENTIAL = "UNAUTHENTICATED";
// A string of JSON, which is left as it is, or a number.
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const LONG_NUMBER = /^-?\d{16,}$/; // from 2^53 on, numbers of JavaScript are rounded

/** The value of a text of JSON, whose integers of 16 digits or more are texts. @param {string} text @returns {any} */
export const parsedJson = (text) =>
  JSON.parse(text.replace(STRING_OR_NUMBER, (part) => (LONG_NUMBER.test(part) ? `"${part}"` : part)));

/**
 * A request without its data: `message` is a sentence, `code` that of GraphQL or "UNREACHABLE", `isUncertain` whether a
 * mutation may have been made.
 */
export class ApiError extends Error {
  /** @param {string} message @param {string} code @param {boolean} [isUncertain] */
  constructor(message, code, isUncertain = false) {
    super(message);
    this.code = code;
    this.isUncertain = isUncertain;
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
    /** How many requests were refused for want of a key that the server knows. */
    this.refusals = 0;
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
      this.refusals += 1;
      throw new ApiError("The key has characters that no key has; copy it again.", "UNAUTHENTICATED");
    }
    const own = { "content-type": "application/json", accept: ACCEPT, "clade-reads": "2" };
    return this.credential ? { ...own, authorization: `Bearer ${this.credential}` } : own;
  }

  /**
   * The answer to a document. Throws ApiError if anything in it is missing because of an error; errors that are
   * `expected` are in the answer.
   * @param {string} document @param {Record<string, unknown>} [variables] @param {Expected} [expected] @returns {Promise<Answer<any>>}
   */
  async ask(document, variables = {}, expected = () => false) {
    if (this.#isNew) this.calls = [];
    this.#isNew = false;
    const { calls } = this;
    const begun = performance.now();
    const { status, answer } = await this.#send(JSON.stringify({ query: document, variables }));
    const errors = answer.errors ?? [];
    const reads = answer.extensions?.reads ?? null;
    calls.push({ document, variables, reads, begun, ended: performance.now() });
    const wrong = errors.find((/** @type {GraphQLError} */ error) => !expected(error));
    if (wrong?.extensions?.code === MISSING_CREDENTIAL) this.refusals += 1;
    this.onCall();
    if (wrong || (!answer.data && !errors.length)) {
      const { message = `The server answered with HTTP status ${status}.`, extensions } = wrong ?? {};
      throw new ApiError(message, extensions?.code ?? "REJECTED", Boolean(extensions?.uncertain));
    }
    return { data: answer.data ?? {}, errors, reads };
  }

  /** @param {string} body */
  async #send(body) {
    const headers = this.headers();
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
}
