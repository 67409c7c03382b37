// Session of one mutation: its draft, the dry run, the write, and what comes in between: conflicts and large moves.
import { levelOf } from "./documents.js";
import { content, lastContent, mutation, severalEdits } from "./documents_writing.js";
import { draftOf, FieldError, FORMS, rebased } from "./forms.js";
import { same } from "./values.js";
import { parentOf } from "./words.js";
/** @import { Api, Hierarchy } from "./api" */
/** @import { Content, Move, Plan, Verb } from "./documents_writing" */
/** @import { Row } from "./model" */
/** @import { Draft } from "./forms" */
/**
 * @typedef {{api: Api, hierarchy: Hierarchy, verb: Verb, path: string | null, draft?: Draft, rows?: Row[]}} Options - `path`
 *   is that of the node, or of a new node's parent; `draft` is what the fields begin with where that is not the node's
 *   content; `rows` are several nodes that change together
 */

/** What was written, as a sentence, where it is now, null for the roots, and what takes it back.
 * @typedef {{path: string | null, said: string, undo: Options | null}} Written */

/** @type {Record<Verb, string>} */
const DONE = {
  create: "created", update: "changed", rename: "renamed", move: "moved", delete: "deleted", set: "changed",
};
const NO_ANSWER = new Set(["UNREACHABLE", "REJECTED", "TIMEOUT", "INTERNAL_SERVER_ERROR"]);
const WITHOUT_FIELD = new Set(["id", "values"]); // of a draft
const RUNNING = new Set(["COPYING", "SWEEPING"]);

/** The path above a node; null for a root. @param {string} path */
export const above = (path) => parentOf(path) || null;

/** A key of idempotency; the page may be served without HTTPS, where browsers have no randomUUID. */
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");

/**
 * The content of a node with its attributes; null where there is none. `level` is the one that it probably has.
 * @param {Api} api @param {Hierarchy} hierarchy @param {{path: string} | {id: string}} where @param {string} [level]
 * @returns {Promise<Content | null>}
 */
async function read(api, hierarchy, where, level = hierarchy.levels[0].name) {
  const { data } = await api.ask(content(hierarchy, levelOf(hierarchy, level)), where);
  return !data.node || data.node.level === level ? data.node : read(api, hierarchy, where, data.node.level);
}

/**
 * The options of the session that creates a deleted node again, with its id and its last content. Throws ApiError.
 * @param {Api} api @param {Hierarchy} hierarchy @param {Row} node @returns {Promise<Options>}
 */
export async function creatingAgain(api, hierarchy, { id, level, path, key }) {
  const { data } = await api.ask(lastContent(levelOf(hierarchy, level)), { id });
  return { api, hierarchy, verb: "create", path: above(path), draft: { ...draftOf(hierarchy, { ...data.deletedNode.lastRevision, level }), id, key } };
}

/** The fields of forms that have other names in the input. @type {Record<string, string>} */
const SHOWN_AT = { position: "beside" };

/** The field of a form that an error concerns; "" for the form as a whole. @param {any} error @param {string[]} fields */
function fieldOf(error, fields) {
  if (error instanceof FieldError) return error.field;
  if ("field" in error) {
    const name = error.field?.at(-1) ?? "";
    return fields.find((one) => one === (SHOWN_AT[name] ?? name)) ?? "";
  }
  const words = new Set(error.message.match(/\w+/g));
  const snake = (/** @type {string} */ name) => name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  return fields.find((name) => words.has(name) || words.has(snake(name))) ?? "";
}

const ABOUT_VARIABLE = /^Variable '\$\w+' has invalid value at [\w.[\]]+: /;
/** What GraphQL says about inputs, and how a form says it. @type {[RegExp, string][]} */
const PLAIN = [
  [/^Expected value of type '\w+' to include required field '(\w+)'.*$/s, "“$1” is missing."],
  [/^Expected value of type '\w+' not to include unknown field '(\w+)'.*$/s, "There is no “$1” here."],
  [/^Expected a? ?value of non-null type .*$/s, "A value is missing."],
  [/^Expected value of type '\w+' to be an object.*$/s, "This is no object; write {\"name\": \"value\"}."],
  [/^Value '(.*)' does not exist in '\w+' enum\..*$/s, "“$1” is none of the values that are allowed."],
  [/^Int cannot represent non 32-bit signed integer value: (.*)$/s, "$1 is not between -2147483648 and 2147483647."],
  [/^(?:Int|Float) cannot represent non[ -](?:integer|numeric) value: (.*)$/s, "$1 is no number of this kind."],
  [/^String cannot represent a non string value: (.*)$/s, "$1 is no text; write it in quotation marks."],
];

/** A message of the server in words of forms. @param {string} message */
function plainly(message) {
  const own = message.replace(ABOUT_VARIABLE, "");
  const [pattern, words] = PLAIN.find(([one]) => one.test(own)) ?? [];
  return pattern && words ? own.replace(pattern, words) : own;
}

export class WriteSession {
  /** @type {Content | null} the node as it was read, or the parent of a new one */
  node = null;
  /** @type {Draft | null} */
  draft = null;
  /** @type {Plan | null} what the dry run of this draft found */
  plan = null;
  /** @type {Content | null} the node as somebody else wrote it meanwhile */
  theirs = null;
  /** @type {Move | null} */
  move = null;
  /** @type {Record<string, string>} sentences by field, "" for the form */
  errors = {};
  /** Whether the write may have been made although no answer came. */
  isUnknown = false;
  /** @type {"reading" | "form" | "busy" | "conflict" | "moving"} */
  step = "reading";
  #key = newKey();
  /** @type {string[]} the paths of the edits that were sent */
  #edited = [];
  /** @type {Draft | null} what the fields held first */
  #first = null;

  /** @param {Options} options @param {() => void} onChange @param {(written?: Written) => void} onDone */
  constructor(options, onChange, onDone) {
    this.options = options;
    this.form = FORMS[options.verb];
    this.onChange = onChange;
    this.onDone = onDone;
  }

  /** @param {Partial<WriteSession>} state */
  #set(state) {
    Object.assign(this, state);
    this.onChange();
  }

  /** Read the node; with a draft preview it at once. */
  async start() {
    const { api, hierarchy, path, draft, rows } = this.options;
    try {
      this.node = path === null || rows ? null : await read(api, hierarchy, { path });
      if (path !== null && !rows && !this.node) throw new Error(`There is no node at ${path} any more.`);
    } catch (error) {
      return this.#set({ errors: { "": /** @type {Error} */ (error).message } });
    }
    this.#first = draft ?? this.form.start({ hierarchy, node: this.node, rows, draft: {} });
    this.#set({ draft: this.#first, step: "form" });
    if (draft) await this.send(true);
  }

  /** Change the draft, which needs a new preview; while one is under way the draft stays as it was sent. @param {Draft} part */
  change(part) {
    if (this.step === "busy") this.onChange();
    else this.#renew({ draft: { ...this.draft, ...part } });
  }

  /** @param {Partial<WriteSession>} state */
  #renew(state) {
    this.#key = newKey(); // a key belongs to one mutation with its arguments
    this.#set({ plan: null, errors: {}, isUnknown: false, ...state });
  }

  /** Whether a field must keep the rules: what a node has from before they were made, it may keep. @param {string} field */
  isChecked(field) {
    if (this.options.verb !== "update") return true;
    const old = draftOf(this.options.hierarchy, /** @type {Content} */ (this.node));
    const value = (/** @type {Draft} */ draft) => (field in draft.values ? draft.values[field] : draft[field]);
    return !same(value(/** @type {Draft} */ (this.draft)), value(old));
  }

  /** Say what is wrong before anything is sent. @param {Record<string, string>} errors by field */
  refuse(errors) {
    this.#set({ errors });
  }

  /** Whether leaving now would lose what somebody typed. */
  get isTyped() {
    return ["form", "busy", "conflict"].includes(this.step) && !same(this.draft, this.#first);
  }

  /** Whether the preview found that the draft can be written. */
  get isReady() {
    return this.isUnknown || this.plan !== null;
  }

  /** @param {boolean} dryRun */
  async send(dryRun) {
    const { api, hierarchy, verb, rows } = this.options;
    this.#set({ errors: {}, step: "busy" });
    try {
      const given = rows ? this.#edits(rows) : { input: this.#input() };
      const variables = { ...given, dryRun, ...(!dryRun && { idempotencyKey: this.#key }) };
      const document = rows ? severalEdits(hierarchy) : mutation(hierarchy, /** @type {any} */ (verb));
      // It is written also where its node could not be read afterwards.
      const { result } = (await api.ask(document, variables, ({ path }) => path?.[0] === "result" && path.length > 1)).data;
      if (result.userErrors.length) await this.#failed(dryRun, result.userErrors);
      else if (dryRun) this.#set({ plan: result.plan, step: "form" });
      else if (RUNNING.has(result.move?.state)) this.#set({ move: result.move, step: "moving" });
      else this.finish(result.move?.to ?? result.node?.path);
    } catch (error) {
      await this.#failed(dryRun, [error]);
    }
  }

  /** The input of the mutation of one node. Throws FieldError. */
  #input() {
    const { hierarchy, verb } = this.options;
    const { node } = this;
    const own = this.form.input({ hierarchy, node, draft: /** @type {Draft} */ (this.draft) });
    if (!Object.keys(own).length) throw new FieldError("", "Nothing is changed yet.");
    return verb === "create" ? own : { ...own, node: { path: node?.path }, expectedRevision: node?.revision };
  }

  /** The edits of several nodes, the deepest first: an edit sees those before it. Throws FieldError. @param {Row[]} rows */
  #edits(rows) {
    const { hierarchy, verb } = this.options;
    const depth = (/** @type {Row} */ { path }) => path.split("/").length;
    const sorted = [...rows].sort((one, other) => depth(other) - depth(one));
    this.#edited = sorted.map(({ path }) => path);
    const input = (/** @type {Row} */ node) => this.form.input({ hierarchy, node, rows, draft: /** @type {Draft} */ (this.draft) });
    return { edits: sorted.map((node) => ({ [verb === "set" ? "update" : verb]: { node: { path: node.path }, ...input(node) } })) };
  }

  /** Show each error at its field. @param {boolean} dryRun @param {any[]} faults */
  async #failed(dryRun, faults) {
    const { api, hierarchy, verb } = this.options;
    const { node, draft } = this;
    if (verb !== "create" && node && faults.some(({ code }) => ["CONFLICT", "NOT_FOUND"].includes(code))) {
      const now = await read(api, hierarchy, { id: node.id }, node.level).catch(() => null);
      if (now && (now.revision !== node.revision || now.path !== node.path)) return this.#set({ theirs: now, step: "conflict" });
    }
    const isUnknown = !dryRun && faults.some((one) => one.isUncertain || NO_ANSWER.has(one.code));
    const own = Object.keys(draft ?? {}).filter((name) => !WITHOUT_FIELD.has(name));
    /** @type {Record<string, string>} */
    const errors = {};
    for (const fault of faults) {
      const field = isUnknown ? "" : fieldOf(fault, [...own, ...Object.keys(draft?.values ?? {})]);
      const edited = this.#edited[fault.edit ?? -1];
      errors[field] = [errors[field], edited && `${edited}:`, plainly(fault.message)].filter(Boolean).join(" ");
    }
    this.#set({ isUnknown, plan: isUnknown ? this.plan : null, errors, step: "form" });
  }

  /** Keep the own changes on top of what somebody else wrote, except in some fields, and preview them. @param {Set<string>} except */
  async mineAgain(except) {
    const { hierarchy, verb } = this.options;
    const [node, theirs, draft] = /** @type {[Content, Content, Draft]} */ ([this.node, this.theirs, this.draft]);
    this.#renew({ node: theirs, draft: verb === "update" ? rebased(hierarchy, draft, node, theirs, except) : draft });
    await this.send(true);
  }

  /** The end of a write. @param {string | null | undefined} to */
  finish(to) {
    const { verb, path, rows } = this.options;
    const at = verb === "delete" ? above(this.node?.path ?? "") : to ?? path;
    const what = rows ? `${rows.length} ${rows.length === 1 ? "node is" : "nodes are"}` : `${verb === "create" || verb === "update" ? at : this.node?.path} is`;
    const rest = verb === "delete" && this.node?.descendantCount ? " Undo creates it again, but not what was below it." : "";
    this.onDone({ path: at, said: `${what} ${DONE[verb]}.${rest}`, undo: rows ? null : this.#undo(at ?? "") });
  }

  /** The options of the session that takes this write back. @param {string} at path of the node now @returns {Options} */
  #undo(at) {
    const { api, hierarchy, verb } = this.options;
    const common = { api, hierarchy, path: at };
    if (verb === "create" || !this.node) return { ...common, verb: "delete", draft: { policy: "REFUSE" } };
    const { node } = this;
    if (verb === "delete") return { ...common, verb: "create", path: above(node.path), draft: { ...draftOf(hierarchy, node), id: node.id, key: node.key } };
    const draft = { update: () => draftOf(hierarchy, node), rename: () => ({ key: node.key }), move: () => ({ to: parentOf(node.path), side: "", beside: "" }) };
    return { ...common, verb, draft: draft[/** @type {"update" | "rename" | "move"} */ (verb)]() };
  }

  /** The end of a large move that turned out to be impossible. @param {Move} move */
  undone(move) {
    this.#renew({ errors: { "": `Nothing was changed. ${move.reason ?? ""}` }, step: "form" });
  }

  /** Leave; what was written before stays. */
  leave() {
    if (this.step !== "busy") this.onDone(this.step === "moving" ? { path: this.options.path, said: "", undo: null } : undefined);
  }
}
