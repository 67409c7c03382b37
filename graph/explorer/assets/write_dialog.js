// Dialog of a mutation, or of several that are made all or none: its draft, the dry run, the write, and what comes in
// between: conflicts with what somebody else wrote, and the progress of large moves.
import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { Children, ChildrenFields, titleOf } from "./children.js";
import { same } from "./fields.js";
import { batch, content, differences, drafted, draftOf, FieldErrors, FORMS, mutation, NOTHING, PROGRESS, rebased } from "./forms.js";
import { childPath, deletedNodes, keyOf, levelOf, levelsBelow, parentOf } from "./hierarchy.js";
import { levelWord, NONE, number, quantity } from "./words.js";
/** @import { Api } from "./api" */
/** @import { Row } from "./children" */
/** @import { Content, Difference, Draft, Fault, Move, Plan, Verb } from "./forms" */
/** @import { Hierarchy } from "./hierarchy" */
/**
 * @typedef {{api: Api, hierarchy: Hierarchy, verb: Verb, path: string | null, draft?: Draft, id?: string}} Options - `path`
 *   is that of the node, or of a new node's parent; `draft` is what the fields begin with where that is not the node's
 *   content; `id` is that of a deleted node
 */
/** @typedef {{session: WriteSession}} Props */
/** A change as it is sent. @typedef {Row & {kind: string, input: Record<string, unknown>}} Edit */

const MAX_EDITS = 100; // that the server makes at once
const POLL_MILLISECONDS = 1000;
const NO_ANSWER = new Set(["UNREACHABLE", "REJECTED", "TIMEOUT", "INTERNAL_SERVER_ERROR"]);
/** What the undo of a deletion does, by the policy for what was below. @type {Record<string, string>} */
const UNDO = {
  CASCADE: "Undo restores it, with all that was deleted below it.",
  REPARENT: "Undo restores it alone; its children stay where they are.",
};
const RUNNING = new Set(["COPYING", "SWEEPING"]);

/**
 * Opens a dialog, as `openWrite` says.
 * @param {Options} options
 * @returns {Promise<string | null | undefined>}
 */
export function openDialog(options) {
  const host = document.body.appendChild(document.createElement("div"));
  return new Promise((resolve) => {
    const close = (/** @type {any} */ result) => {
      host.querySelector("dialog")?.close(); // gives the focus back
      render(null, host);
      host.remove();
      resolve(result);
    };
    render(html`<${WriteDialog} options=${options} onClose=${close} />`, host);
  });
}

/** @param {{options: Options, onClose: (result: any) => void}} props */
function WriteDialog({ options, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [, redraw] = useState(0);
  const [session] = useState(() => new WriteSession(options, () => redraw((old) => old + 1), onClose));
  useEffect(() => {
    dialog.current?.showModal();
    session.start();
  }, []);
  const Step = { reading: Reading, form: Editing, busy: Editing, conflict: Conflict, moving: Progress, deleted: Deleted }[session.step];
  const find = (/** @type {string} */ selector) => /** @type {HTMLElement | null} */ (dialog.current?.querySelector(selector) ?? null);
  useEffect(() => find("form input, form select, .primary, button")?.focus(), [Step]);
  useEffect(() => {
    find(".write-error[role=alert]")?.scrollIntoView({ block: "nearest" });
    find("[aria-invalid=true]")?.focus();
  }, [session.errors]);
  useEffect(() => find(".write-rows tbody tr:last-child input")?.focus(), [session.children.added]);
  useEffect(() => find(".write-plan")?.scrollIntoView({ block: "nearest" }), [session.plan]);
  const [isAsking, setAsking] = useState(false);
  const leave = () => (session.isTyped ? setAsking(true) : session.leave());
  const onCancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    leave();
  };
  // A browser may close a dialog at a second Escape, whatever its cancel event was answered.
  const onClosed = () => {
    if (session.step === "busy" || session.isTyped) dialog.current?.showModal();
    leave();
  };
  useEffect(() => {
    const place = location.href;
    const stay = () => {
      if (location.href === place) return;
      if (!session.isTyped && session.step !== "busy") return onClose(undefined);
      history.pushState(null, "", place); // the dialog stays with the node that it is about
      dispatchEvent(new Event("hashchange"));
      setAsking(session.isTyped);
    };
    addEventListener("hashchange", stay);
    return () => removeEventListener("hashchange", stay);
  }, []);
  const typed = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!isAsking) return typed.current?.focus();
    typed.current = /** @type {HTMLElement} */ (document.activeElement);
    find(".write-ask .primary")?.focus();
  }, [isAsking]);
  const undo = () => {
    const deleted = openDialog({ ...options, verb: "restore", id: session.node?.id, draft: undefined });
    onClose(deleted.then((path) => path ?? session.parent));
  };
  return html`<dialog class="write" ref=${dialog} aria-labelledby="write-title" onCancel=${onCancel}
    onClose=${onClosed}>
    <h2 id="write-title">${session.form.title(options.path ?? "")}</h2>
    ${isAsking && html`<div class="write-ask" role="alertdialog" aria-labelledby="write-ask"><p id="write-ask">Discard what you typed?</p>
      <button type="button" class="primary" onClick=${() => setAsking(false)}>Keep editing</button>
      <button type="button" onClick=${() => session.leave()}>Discard</button></div>`}
    <${Step} session=${session} onUndo=${undo} />
  </dialog>`;
}

/** @param {Props} props */
const Reading = ({ session }) => html`<${Problem} session=${session} />
  <div class="write-buttons"><button type="button" onClick=${() => session.leave()}>Cancel</button></div>`;

/** @param {Props} props */
function Editing({ session }) {
  const { options, node, draft, errors, plan, isReady, isUnknown } = session;
  const isBusy = session.step === "busy";
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const fields = /** @type {HTMLInputElement[]} */ ([...event.currentTarget.elements].filter((one) => one.name));
    const wrong = fields.filter(({ name, validity }) => validity.badInput || (!validity.valid && session.isChecked(name)));
    if (wrong.length) session.refuse(Object.fromEntries(wrong.map((one) => [one.name, one.validationMessage])));
    else if (!isBusy) session.send(!isReady);
  };
  const action = isUnknown ? "Send again" : isReady ? session.form.action : "Preview";
  return html`<form onSubmit=${submit} novalidate aria-busy=${isBusy}>
    <${session.form.Fields} api=${options.api} hierarchy=${options.hierarchy} node=${node} draft=${draft}
      errors=${errors} set=${(/** @type {any} */ part) => session.change(part)} />
    <${ChildrenFields} session=${session} />
    <div role="status">${plan && html`<${Forecast} session=${session} />`}</div>
    <${Problem} session=${session} />
    <div class="write-buttons">
      <button type="submit" class=${isReady && options.verb === "delete" ? "primary danger" : "primary"}>${action}</button>
      <button type="button" onClick=${() => session.leave()}>Cancel</button>
    </div>
  </form>`;
}

/** @param {Props} props */
const Problem = ({ session: { errors, isUnknown } }) => errors[""] && html`<p class="write-error" role="alert">${errors[""]}
  ${isUnknown ? " It is not certain whether this was written. Send it again: nothing is changed twice." : ""}</p>`;

/** What a mutation would change. @param {Props} props */
function Forecast({ session }) {
  const { plan, sent } = session;
  return plan && html`<section class="write-plan">
    <h3>Preview</h3>
    ${sent.map((edit) => html`<${Change} key=${edit.id} session=${session} edit=${edit} />`)}
    <p class="write-hint">${quantity(plan.nodes, "node")} in ${quantity(plan.transactions, "transaction")},
      about ${quantity(plan.writeUnits, "write unit")} of DynamoDB. Nothing is written yet.</p>
  </section>`;
}

/** What one edit would change. @param {Props & {edit: Edit}} props */
function Change({ session, edit: { id, verb, node, draft, input } }) {
  const { hierarchy } = session.options;
  const parent = (id && /** @type {any} */ (input.parent)?.path) || session.node?.path;
  const below = node?.descendantCount ? quantity(node.descendantCount, "descendant") : "";
  if (verb === "restore") {
    const place = [draft.to && ` below ${draft.to}`, draft.key !== node?.key && ` as ${draft.key}`];
    return html`<p>${node?.path} is restored${place}${below && `, with ${below}`}.</p>`;
  }
  const to = verb === "rename" ? [parentOf(node?.path ?? ""), draft.key] : [draft.to, node?.key];
  const level = levelOf(hierarchy, verb === "create" ? draft.level : node?.level ?? "");
  return html`
    ${verb === "create" && html`<p>${childPath(parent, draft.key)} is created. Level: ${levelWord(draft.level)}.</p>
      <${Differences} rows=${differences(level, NOTHING, drafted(hierarchy, draft))} side="after" />`}
    ${verb === "update" && html`${id && html`<p>${node?.path} is changed.</p>`}
      <${Differences} rows=${differences(level, node, drafted(hierarchy, draft))} />`}
    ${["rename", "move"].includes(verb) && html`<p>${node?.path} → ${to.filter(Boolean).join("/")}${below && `, with ${below}`}</p>`}
    ${verb === "reorder" && html`<p>${node?.path} ${["before", "after"].includes(draft.side)
      ? `comes ${draft.side} ${draft.beside}` : `becomes the ${draft.side} of its siblings`}.</p>`}
    ${verb === "delete" && html`<p>${node?.path} is deleted${below && draft.policy === "CASCADE" && `, with ${below}`}${below &&
      draft.policy === "REPARENT" && "; its children move up"}.</p>
      <${Differences} rows=${differences(level, node, NOTHING)} side="before" />`}`;
}

/** A list of differences, old to new, or of one side alone. @param {{rows: Difference[], side?: "before" | "after"}} props */
export const Differences = ({ rows, side }) => html`<dl class="differences">
  ${rows.map(({ label, before, after }) => html`<div key=${label}><dt>${label}</dt>
    <dd>${side ? { before, after }[side] : html`${before === NONE ? before : html`<del>${before}</del>`} → <ins>${after}</ins>`}</dd></div>`)}
</dl>`;

/** @param {Props} props */
function Conflict({ session }) {
  const { node, theirs, draft, options: { hierarchy, verb } } = session;
  if (!node || !theirs || !draft) return null;
  const level = levelOf(hierarchy, node.level);
  const their = differences(level, node, theirs);
  const own = verb === "update" ? differences(level, node, drafted(hierarchy, draft)) : [];
  const rows = [...new Set([...their, ...own].map((row) => row.label))].map((label) => ({
    label, they: their.find((row) => row.label === label), mine: own.find((row) => row.label === label),
  }));
  return html`<div role="alert">
      <p>${theirs.changedBy ?? "Somebody else"} wrote this node meanwhile.
        ${theirs.revision !== node.revision && ` It was at revision ${node.revision}, and is at revision ${theirs.revision} now.`}
        ${theirs.path !== node.path && ` It was at ${node.path}, and is at ${theirs.path} now.`}</p>
    </div>
    ${rows.length > 0 && html`<div class="write-scroll" tabindex="0" role="region" aria-label="Differences"><table class="write-conflict">
      <thead><tr><td></td><th scope="col">Before</th><th scope="col">Theirs</th><th scope="col">Mine</th></tr></thead>
      <tbody>${rows.map(({ label, they, mine }) => html`<tr key=${label}><th scope="row">${label}</th>
        <td>${(they ?? mine)?.before}</td><td>${they?.after ?? NONE}</td><td>${mine?.after ?? NONE}</td></tr>`)}
      </tbody></table></div>`}
    <div class="write-buttons">
      <button type="button" class="primary" onClick=${() => session.takeTheirs()}>Take theirs</button>
      <button type="button" onClick=${() => session.mineAgain()}>Write mine again</button>
    </div>`;
}

/** @param {Props} props */
function Progress({ session }) {
  const first = /** @type {Move} */ (session.move);
  const [move, setMove] = useState(first);
  useEffect(() => {
    const poll = async () => {
      const now = await session.options.api.ask(PROGRESS, { id: first.id }).then(({ data }) => data.move, () => ({ ...move }));
      if (now?.state === "UNDONE") session.undone(now);
      else if (!now || now.state === "DONE") session.finish(first.to);
      else setMove(now);
    };
    const timer = setTimeout(poll, POLL_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [move]);
  const swept = session.options.verb === "restore" ? "finished" : first.to ? "removed at the former place" : "removed";
  const words = move.state === "COPYING" ? "copied" : swept;
  return html`<p id="write-progress">${number(move.written)} of ${quantity(move.nodes, "node")} ${words}.</p>
    <progress aria-labelledby="write-progress" max=${move.nodes} value=${move.written} />
    <p role="status">This is a large move; it continues in the background, also when this is closed.</p>
    <div class="write-buttons"><button type="button" onClick=${() => session.leave()}>Close</button></div>`;
}

/** @param {Props & {onUndo: () => void}} props */
const Deleted = ({ session, onUndo }) => html`<p role="status">${session.node?.path} is deleted.
    ${session.node?.descendantCount ? UNDO[session.draft?.policy] : ""}</p>
  <div class="write-buttons">
    <button type="button" class="primary" onClick=${() => session.leave()}>Close</button>
    <button type="button" onClick=${onUndo}>Undo…</button>
  </div>`;

// -- the state of a dialog --------------------------------------------------------------------------------------------

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
  /** @type {Edit[]} what was sent last */
  sent = [];
  /** @type {Record<string, string>} sentences by field, "" for the form; those of rows have the row before a dot */
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
    this.children = new Children(options, onChange);
  }

  /** The levels of the children that this dialog offers. */
  get levels() {
    const { hierarchy, verb } = this.options;
    return ["create", "update"].includes(verb) && this.draft ? levelsBelow(hierarchy, /** @type {any} */ (this.draft)) : [];
  }

  /** @param {Partial<WriteSession>} state */
  #set(state) {
    Object.assign(this, state);
    this.onChange();
  }

  /** Read the node; preview a draft at once, and what is restored. */
  async start() {
    const { api, hierarchy, path, draft, id } = this.options;
    try {
      this.node = id ? await readDeleted(api, id) : path === null ? null : await read(api, hierarchy, { path });
      if (id && !this.node) throw new Error(`${path} is deleted no more, or you may not see it.`);
      if (path !== null && !this.node) throw new Error(`There is no node at ${path} any more.`);
    } catch (error) {
      return this.#set({ errors: { "": /** @type {Error} */ (error).message } });
    }
    this.#first = draft ?? this.form.start({ hierarchy, node: this.node, draft: {} });
    this.#set({ draft: this.#first, step: "form" });
    if (draft || id) await this.send(true);
  }

  /** Change the draft, which needs a new preview; while one is under way the draft stays as it was sent. @param {Draft} part */
  change(part) {
    if (this.step === "busy") this.onChange();
    else this.#renew({ draft: { ...this.draft, ...part } });
  }

  /** Change children, likewise. @param {() => void} change */
  changeRows = (change) => {
    if (this.step !== "busy") change();
    this.change({});
  };

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
    const { id, name } = fieldIn(field);
    const row = id ? this.children.changed.get(id) : this.#own;
    if (row?.verb !== "update") return Boolean(row);
    const value = (/** @type {Draft} */ draft) => (name in draft.values ? draft.values[name] : draft[name]);
    return !same(value(row.draft), value(draftOf(this.options.hierarchy, /** @type {Content} */ (row.node))));
  }

  /** Say what is wrong before anything is sent. @param {Record<string, string>} errors by field, those that the browser found */
  refuse(errors) {
    let others = {};
    try {
      this.#edits();
    } catch (error) {
      others = /** @type {FieldErrors} */ (error).errors;
    }
    this.#tell({ ...others, ...errors });
  }

  /** The node of the dialog, as its children are. @returns {Row} */
  get #own() {
    return { id: "", verb: this.options.verb, node: this.node, draft: /** @type {Draft} */ (this.draft) };
  }

  /** What the drafts change, the node's own change first. Throws FieldErrors. */
  #edits() {
    const { hierarchy, verb } = this.options;
    /** @type {Edit[]} */
    const edits = [];
    /** @type {Record<string, string>} */
    const errors = {};
    for (const row of [this.#own, ...this.children.changes(this.draft?.level)]) {
      try {
        const changed = FORMS[row.verb].input({ hierarchy, node: row.node, draft: row.draft });
        const isNew = row.verb === "create";
        const place = isNew ? row.id && { parent: verb === "create" ? { path: childPath(this.node?.path, this.draft?.key) } : { id: this.node?.id } }
          : row.verb !== "restore" && { node: { id: row.node?.id }, expectedRevision: row.node?.revision };
        if (Object.keys(changed).length) edits.push({ ...row, kind: FORMS[row.verb].kind ?? row.verb, input: { ...changed, ...place } });
      } catch (error) {
        if (!(error instanceof FieldErrors)) throw error;
        for (const [name, text] of Object.entries(error.errors)) errors[row.id ? `${row.id}.${name}` : name] = text;
      }
    }
    if (Object.keys(errors).length) throw new FieldErrors(errors);
    return edits;
  }

  /** Whether leaving now would lose what somebody typed. */
  get isTyped() {
    return ["form", "busy", "conflict"].includes(this.step) && (this.children.changed.size > 0 || !same(this.draft, this.#first));
  }

  /** Whether the preview found that the draft can be written. */
  get isReady() {
    return this.isUnknown || this.plan !== null;
  }

  /** @param {boolean} dryRun */
  async send(dryRun) {
    const { api, hierarchy } = this.options;
    this.#set({ errors: {}, step: "busy" });
    try {
      const edits = this.sent = this.#edits();
      const [first] = edits;
      if (!first) throw new FieldErrors({ "": "Nothing is changed yet." });
      if (edits.length > MAX_EDITS) throw new FieldErrors({ "": `${edits.length} changes are too many; undo some, since ${MAX_EDITS} can be written at once.` });
      const [document, given] = edits.length > 1 ? [batch(hierarchy), { edits: edits.map(({ kind, input }) => ({ [kind]: input })) }]
        : [mutation(hierarchy, first.verb), { input: first.input }];
      const variables = { ...given, dryRun, ...(!dryRun && { idempotencyKey: this.#key }) };
      // It is written also where its nodes could not be read afterwards.
      const { data } = await api.ask(document, variables, ({ path }) => path?.[0] === "result" && path.length > 1);
      const result = data.result ?? { userErrors: [] };
      if (result.userErrors.length) await this.#refused(result.userErrors);
      else if (dryRun) this.#set({ plan: result.plan, step: "form" });
      else if (RUNNING.has(result.move?.state)) this.#set({ move: result.move, step: "moving" });
      else this.finish(first.id ? this.node?.path : result.move?.to ?? (result.node ?? result.nodes?.[0])?.path);
    } catch (error) {
      await this.#failed(dryRun, error);
    }
  }

  /** Show all faults of the input, each at its field. @param {Fault[]} faults */
  async #refused(faults) {
    /** @type {Record<string, string>} */
    const errors = {};
    for (const { field, message, code, edit } of faults) {
      const row = this.sent.length === 1 ? this.sent[0] : this.sent[edit ?? NaN]; // none for what is wrong with all
      const theirs = row && code === "CONFLICT" ? await this.#theirs(row) : null;
      if (theirs && !row.id) return this.#set({ theirs, step: "conflict" });
      // An attribute has one field, whatever element or part of its value is at fault.
      const part = (field?.[0] === "attributes" ? field[2] : field?.[0]) ?? "";
      const name = row ? nameIn(row, part === "position" ? (row.draft.beside ? "beside" : "side") : part) : "";
      const text = theirs ? this.children.rebase(/** @type {any} */ (row), theirs) : plainly(message);
      errors[name] = [errors[name], titled(row, name, text)].filter(Boolean).join(" ");
    }
    this.#tell(errors);
  }

  /** A node as somebody else wrote it meanwhile; null where nobody did. @param {Row} row */
  async #theirs({ verb, node }) {
    if (["create", "restore"].includes(verb) || !node) return null;
    const now = await read(this.options.api, this.options.hierarchy, { id: node.id }, node.level).catch(() => null);
    return now && now.revision !== node.revision ? now : null;
  }

  /** Show errors, those of children with their level. @param {Record<string, string>} errors */
  #tell(errors) {
    const row = Object.keys(errors).map((field) => this.children.changed.get(fieldIn(field).id)).find((one) => one);
    if (row) this.children.shown = row.draft.level;
    this.#set({ plan: null, errors, step: "form" });
  }

  /** @param {boolean} dryRun @param {any} error */
  async #failed(dryRun, error) {
    if (error instanceof FieldErrors) return this.#tell(error.errors);
    const isUnknown = !dryRun && (error.isUncertain || NO_ANSWER.has(error.code));
    if (isUnknown) return this.#set({ isUnknown, errors: { "": plainly(error.message) }, step: "form" });
    const place = ABOUT_EDIT.exec(error.message)?.[1];
    const row = this.sent.length === 1 ? this.sent[0] : this.sent[Number(place ?? NaN)];
    const words = new Set(error.message.match(/\w+/g));
    const name = row ? nameIn(row, fieldsOf(row).find((name) => words.has(name) || words.has(name.replace(/[A-Z]/g, "_$&").toLowerCase())) ?? "") : "";
    this.#tell({ [name]: titled(row, name, plainly(error.message)) });
  }

  /** Discard the own change in favour of what somebody else wrote. */
  takeTheirs() {
    const theirs = /** @type {Content} */ (this.theirs);
    if (!this.children.changed.size) return this.onDone(theirs.path);
    this.#renew({ node: theirs, draft: draftOf(this.options.hierarchy, theirs), step: "form" });
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

  /** The path of the node's parent, null for a root. */
  get parent() {
    return parentOf(this.node?.path ?? "") || null;
  }

  /** Leave; what was written before stays. */
  leave() {
    const isMoved = this.step === "moving" && this.options.verb !== "restore"; // a large restore has no node yet
    if (this.step === "deleted") this.onDone(this.parent);
    else if (this.step !== "busy") this.onDone(isMoved ? this.options.path : undefined);
  }
}

/**
 * The content of a node with its attributes; null where there is none. `level` is the one that it probably has.
 * @param {Api} api @param {Hierarchy} hierarchy @param {{path: string} | {id: string}} where @param {string} [level]
 * @returns {Promise<Content | null>}
 */
async function read(api, hierarchy, where, level = hierarchy.levels[0].name) {
  const { data } = await api.ask(content(hierarchy, levelOf(hierarchy, level)), where);
  return !data.node || data.node.level === level ? data.node : read(api, hierarchy, where, data.node.level);
}

/** A deleted node, as far as a dialog needs it; null where it is none. @param {Api} api @param {string} id @returns {Promise<any>} */
async function readDeleted(api, id) {
  const { gone0 } = (await api.ask(deletedNodes(1), { id0: id })).data;
  return gone0 && { ...gone0, id, key: keyOf(gone0.path) };
}

/** A key of idempotency; the page may be served without HTTPS, where browsers have no randomUUID. */
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");

/** The fields that a dialog has for a node. @param {Row} row @returns {string[]} */
function fieldsOf({ id, verb, draft }) {
  if (id && verb === "delete") return [];
  const own = id ? ["name", ...(verb === "create" ? ["key"] : [])] : Object.keys(draft).filter((name) => name !== "values");
  return [...own, ...Object.keys(draft.values ?? {})];
}

/** The name of a field of a node in errors; "" for the dialog as a whole where there is no such field. @param {Row} row @param {string} field */
const nameIn = (row, field) => (fieldsOf(row).includes(field) ? `${row.id && `${row.id}.`}${field}` : "");

/** A sentence with the name of the child that it is about, where none of its fields has it. @param {Row | undefined} row @param {string} name @param {string} text */
const titled = (row, name, text) => (row?.id && !name ? `${titleOf(row)}: ${text}` : text);

/** The row and the name of a field; without a row it is one of the dialog's node. @param {string} field */
const fieldIn = (field) => ({ id: field.slice(0, Math.max(0, field.lastIndexOf("."))), name: field.slice(field.lastIndexOf(".") + 1) });

/** A message of the server in words of forms. @param {string} message */
function plainly(message) {
  const own = message.replace(ABOUT_VARIABLE, "");
  const [pattern, words] = PLAIN.find(([one]) => one.test(own)) ?? [];
  return pattern && words ? own.replace(pattern, words) : own;
}

const ABOUT_EDIT = /^Variable '\$edits' has invalid value at \[(\d+)\]/;
const ABOUT_VARIABLE = /^Variable '\$\w+' has invalid value at [\w.[\]]+: /;
/** What GraphQL says about inputs, and how a form says it. @type {[RegExp, string][]} */
const PLAIN = [
  [/^Expected value of type '\w+' to include required field '(\w+)'.*$/s, "“$1” is missing."],
  [/^Expected value of type '\w+' not to include unknown field '(\w+)'.*$/s, "There is no “$1” here."],
  [/^Expected a? ?value of non-null type .*$/s, "A value is missing."],
  [/^Expected value of type '\w+' to be an object.*$/s, "This is no object; write {\"name\": \"value\"}."],
  [/^Value '(.*)' does not exist in '\w+' enum\..*$/s, "“$1” is none of the values that are allowed."],
  [/^Int cannot represent non 32-bit signed integer value.*$/s, "A whole number is not between -2147483648 and 2147483647."],
  [/^Int cannot represent non-integer value.*$/s, "A whole number is needed, such as 12."],
  [/^Float cannot represent non numeric value.*$/s, "A number is needed, such as 12.5."],
  [/^String cannot represent a non string value.*$/s, "A text is needed; write it in quotation marks."],
  [/\bgive to\.$/, "choose a new parent."],
];
