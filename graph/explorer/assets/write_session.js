// Session of one mutation: its draft, the dry run, the write, and what comes in between: conflicts and large moves.
import { levelOf } from "./documents.js";
import { content, mutation } from "./documents_writing.js";
import { draftOf, FieldError, FORMS, rebased } from "./forms.js";
import { same } from "./values.js";
import { parentOf } from "./words.js";
/** @import { Api, Hierarchy } from "./api" */
/** @import { Content, Move, Plan, Verb } from "./documents_writing" */
/** @import { Draft } from "./forms" */
/**
 * @typedef {{api: Api, hierarchy: Hierarchy, verb: Verb, path: string | null, draft?: Draft}} Options - `path` is that of
 *   the node, or of a new node's parent; `draft` is what the fields begin with where that is not the node's content
 */

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
 * The field of a form that an error concerns; "" for the form as a whole.
 * @param {any} error @param {string[]} fields
 */
function fieldOf(error, fields) {
  if (error instanceof FieldError) return error.field;
  const place = fields.find((one) => one === "key" || one === "to");
  if (place && ["ALREADY_EXISTS", "BAD_PATH", "MISPLACED"].includes(error.code)) return place;
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
  /** @type {"reading" | "form" | "busy" | "conflict" | "moving" | "deleted"} */
  step = "reading";
  #key = newKey();
  /** @type {Draft | null} what the fields held first */
  #first = null;

  /** @param {Options} options @param {() => void} onChange @param {(path: string | null | undefined) => void} onDone */
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
    const { api, hierarchy, path, draft } = this.options;
    try {
      this.node = path === null ? null : await read(api, hierarchy, { path });
      if (path !== null && !this.node) throw new Error(`There is no node at ${path} any more.`);
    } catch (error) {
      return this.#set({ errors: { "": /** @type {Error} */ (error).message } });
    }
    this.#first = draft ?? this.form.start({ hierarchy, node: this.node, draft: {} });
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

  /**
   * Whether a field must keep the rules: what a node has from before they were made, it may keep.
   * @param {string} field
   */
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
    const { api, hierarchy, verb } = this.options;
    this.#set({ errors: {}, step: "busy" });
    try {
      const own = this.form.variables({ hierarchy, node: this.node, draft: /** @type {Draft} */ (this.draft) });
      if (!Object.keys(own).length) throw new FieldError("", "Nothing is changed yet.");
      const place = verb === "create" ? {} : { path: this.node?.path, expectedRevision: this.node?.revision };
      const variables = { ...own, ...place, dryRun, ...(!dryRun && { idempotencyKey: this.#key }) };
      // It is written also where its node could not be read afterwards.
      const { result } = (await api.ask(mutation(hierarchy, verb), variables, ({ path }) => path?.[0] === "result" && path.length > 1)).data;
      if (result.plan?.collisions.length) {
        throw Object.assign(new Error(`Other nodes have these paths: ${result.plan.collisions.join(", ")}`), { code: "ALREADY_EXISTS" });
      }
      if (dryRun) this.#set({ plan: result.plan, step: "form" });
      else if (RUNNING.has(result.move?.state)) this.#set({ move: result.move, step: "moving" });
      else this.finish(result.move?.to ?? result.node?.path);
    } catch (error) {
      await this.#failed(dryRun, error);
    }
  }

  /** @param {boolean} dryRun @param {any} error */
  async #failed(dryRun, error) {
    const { api, hierarchy, verb } = this.options;
    const { node, draft } = this;
    if (verb !== "create" && node && ["CONFLICT", "NOT_FOUND"].includes(error.code)) {
      const now = await read(api, hierarchy, { id: node.id }, node.level).catch(() => null);
      if (now && (now.revision !== node.revision || now.path !== node.path)) return this.#set({ theirs: now, step: "conflict" });
    }
    const isUnknown = !dryRun && (error.isUncertain || NO_ANSWER.has(error.code));
    const own = Object.keys(draft ?? {}).filter((name) => !WITHOUT_FIELD.has(name));
    const field = isUnknown ? "" : fieldOf(error, [...own, ...Object.keys(draft?.values ?? {})]);
    this.#set({ isUnknown, plan: isUnknown ? this.plan : null, errors: { [field]: plainly(error.message) }, step: "form" });
  }

  /** Keep the own changes on top of what somebody else wrote, and preview them. */
  async mineAgain() {
    const { hierarchy, verb } = this.options;
    const [node, theirs, draft] = /** @type {[Content, Content, Draft]} */ ([this.node, this.theirs, this.draft]);
    this.#renew({ node: theirs, draft: verb === "update" ? rebased(hierarchy, draft, node, theirs) : draft });
    await this.send(true);
  }

  /** The end of a write; deletions offer to be undone. @param {string | null | undefined} to */
  finish(to) {
    if (this.options.verb === "delete") this.#set({ step: "deleted" });
    else this.onDone(to ?? this.options.path);
  }

  /** The end of a large move that turned out to be impossible. @param {Move} move */
  undone(move) {
    this.#renew({ errors: { "": `Nothing was changed. ${move.reason ?? ""}` }, step: "form" });
  }

  /** The options of the session that creates the deleted node again, with its id. @returns {Options} */
  undo() {
    const { api, hierarchy } = this.options;
    const node = /** @type {Content} */ (this.node);
    const draft = { ...draftOf(hierarchy, node), id: node.id, key: node.key };
    return { api, hierarchy, verb: "create", path: above(node.path), draft };
  }

  /** Leave; what was written before stays. */
  leave() {
    if (this.step === "deleted") this.onDone(above(this.node?.path ?? ""));
    else if (this.step !== "busy") this.onDone(this.step === "moving" ? this.options.path : undefined);
  }
}
