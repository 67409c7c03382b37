// Children in the dialog of their parent: those of one level as a table of fields, and which of them are changed, added or
// marked for deletion.
import { html, useMemo } from "./vendor/preact.js";
import { sentence } from "./api.js";
import { AttributeField, Field, same } from "./fields.js";
import { childrenContent, differences, draftOf, newDraft, rebased } from "./forms.js";
import { levelOf, levelsBelow, storedAttributes } from "./hierarchy.js";
import { fieldWords, labelOf, levelWord, number, plural, quantity } from "./words.js";
/** @import { Api } from "./api" */
/** @import { Content, Draft, Verb } from "./forms" */
/** @import { Hierarchy, Level } from "./hierarchy" */
/** @import { WriteSession } from "./write_dialog" */
/**
 * What the fields of a node hold, and the node as it was read: of a new one its parent. `id` is "" for the node that the
 * dialog is about.
 * @typedef {{id: string, verb: Verb, node: Content | null, draft: Draft}} Row
 */

const PAGE = 100; // as many as the table of children loads at once
/** Deletions come first, since they make keys free. */
const ORDER = /** @type {Verb[]} */ (["delete", "update", "create"]);

export class Children {
  /** The level that is shown; "" without one. */
  shown = "";
  /** @type {Record<string, {rows: Row[], total: number}>} by level, as they were read */
  lists = {};
  /** Why a level could not be read. */
  error = "";
  /** @type {Map<string, Row>} those that differ from what was read, of all levels, by id */
  changed = new Map();
  /** How many new ones there were. */
  added = 0;

  /** @param {{api: Api, hierarchy: Hierarchy}} options @param {() => void} onChange */
  constructor({ api, hierarchy }, onChange) {
    this.api = api;
    this.hierarchy = hierarchy;
    this.onChange = onChange;
  }

  /** What is changed below a node of this level, in the order in which it is written. @param {string} level @returns {Row[]} */
  changes(level) {
    const levels = levelsBelow(this.hierarchy, { level }).map(({ name }) => name);
    const rows = [...this.changed.values()].filter(({ draft }) => levels.some((one) => one === draft.level));
    return rows.sort((one, other) => ORDER.indexOf(one.verb) - ORDER.indexOf(other.verb));
  }

  /** The rows of the level that is shown: those that were read, then the new ones. @returns {Row[]} */
  get rows() {
    const added = [...this.changed.values()].filter(({ verb, draft }) => verb === "create" && draft.level === this.shown);
    return [...(this.lists[this.shown]?.rows ?? []).map((row) => this.changed.get(row.id) ?? row), ...added];
  }

  /** Show a level, which is read once where its parent is there. @param {string} level @param {string | undefined} parent id */
  async show(level, parent) {
    this.shown = level;
    this.error = "";
    this.onChange();
    if (!level || !parent || this.lists[level]) return;
    try {
      const { data } = await this.api.ask(childrenContent(this.hierarchy, levelOf(this.hierarchy, level)), { id: parent, first: PAGE });
      const { nodes, totalCount } = data.node?.list ?? { nodes: [], totalCount: 0 };
      this.lists[level] = { rows: nodes.map((/** @type {Content} */ node) => this.#read(node)), total: totalCount };
    } catch (error) {
      if (this.shown === level) this.error = sentence(error);
    }
    this.onChange();
  }

  /** @param {Content} node @returns {Row} */
  #read(node) {
    return { id: node.id, verb: "update", node, draft: draftOf(this.hierarchy, node) };
  }

  /** Add a new child of the level that is shown. */
  add() {
    this.set({ id: `new ${++this.added}`, verb: "create", node: null, draft: newDraft(this.hierarchy, this.shown) });
  }

  /** Keep what a row holds, unless that is what was read. @param {Row} row */
  set(row) {
    if (row.node && row.verb === "update" && same(row.draft, draftOf(this.hierarchy, row.node))) this.changed.delete(row.id);
    else this.changed.set(row.id, row);
  }

  /**
   * Put the changes of a row on top of what somebody else wrote meanwhile.
   * @param {Row & {node: Content}} row @param {Content} theirs @returns {string} what they wrote
   */
  rebase({ id, verb, node, draft }, theirs) {
    const list = this.lists[node.level];
    list.rows = list.rows.map((one) => (one.id === id ? this.#read(theirs) : one));
    this.set({ id, verb, node: theirs, draft: rebased(this.hierarchy, draft, node, theirs) });
    const changes = differences(levelOf(this.hierarchy, node.level), node, theirs).map(({ label, before, after }) => `${label}: ${before} → ${after}`);
    return `${theirs.changedBy ?? "Somebody else"} wrote this meanwhile${changes.length ? ` (${changes.join("; ")})` : ""}. The preview shows what yours changes of it.`;
  }
}

/** What a row is called. @param {Row} row */
export const titleOf = ({ node, draft }) => draft.name || node?.name || draft.key || "the new child";

/** The children of the node of a dialog, level by level. @param {{session: WriteSession}} props */
export function ChildrenFields({ session }) {
  const { children, levels, options: { hierarchy, verb }, node, draft } = session;
  if (!levels.length || !draft) return null;
  const level = levels.find(({ name }) => name === children.shown);
  const parent = verb === "update" ? node?.id : undefined;
  const list = level && children.lists[level.name];
  const isRead = !parent || list;
  const show = (/** @type {string} */ name) => children.show(name, parent);
  const changed = children.changes(draft.level);
  const countOf = (/** @type {Level} */ { name }) => changed.filter((row) => row.draft.level === name).length;
  return html`<section class="write-children">
    <h3 id="write-children">Children</h3>
    <div class="choice" role="group" aria-labelledby="write-children">${levels.map((one) => html`<button type="button" key=${one.name}
      aria-pressed=${String(one === level)} onClick=${() => show(one === level ? "" : one.name)}>
      ${fieldWords(plural(levelWord(one.name)))}${countOf(one) ? ` (${number(countOf(one))} changed)` : ""}</button>`)}</div>
    ${level && children.error && html`<p class="write-error" role="alert">${children.error} <button type="button"
      onClick=${() => show(level.name)}>Try again</button></p>`}
    ${level && !isRead && !children.error && html`<p class="write-hint" role="status">Loading…</p>`}
    ${level && isRead && html`
      ${list && list.total > list.rows.length && html`<p class="write-hint">The first ${number(list.rows.length)}${" of "}
        ${quantity(list.total, levelWord(level.name))}. Open the others to edit them.</p>`}
      ${children.rows.length > 0 && html`<div class="write-scroll" tabindex="0" role="region" aria-label="Children"><table class="write-rows">
        <thead><tr><th scope="col">Key</th><th scope="col">Name</th>${storedAttributes(level).map((one) => html`<th scope="col" key=${one.name}
          title=${one.description}>${labelOf(one)}${one.required ? " (required)" : ""}</th>`)}<td></td></tr></thead>
        <tbody>${children.rows.map((row) => html`<${ChildRow} key=${row.id} session=${session} level=${level} row=${row} />`)}</tbody>
      </table></div>`}
      <button type="button" onClick=${() => session.changeRows(() => children.add())}>Add ${levelWord(level.name)}</button>`}
  </section>`;
}

/** @param {{session: WriteSession, level: Level, row: Row}} props */
function ChildRow({ session, level, row }) {
  const errors = Object.entries(session.errors).filter(([field]) => field.startsWith(`${row.id}.`));
  // A key that is pressed changes one row of a hundred, or none while they are sent: all fields get their texts back then.
  return useMemo(() => cellsOf(session, level, row), [row, JSON.stringify(errors), session.step === "busy" ? {} : ""]);
}

/** @param {WriteSession} session @param {Level} level @param {Row} row */
function cellsOf({ children, errors, changeRows }, level, row) {
  const { id, verb, node, draft } = row;
  const attributes = storedAttributes(level);
  const set = (/** @type {Draft} */ part) => changeRows(() => children.set({ ...row, draft: { ...draft, ...part } }));
  const mark = (/** @type {"update" | "delete"} */ as) => changeRows(() => children.set({ ...row, verb: as }));
  const drop = () => changeRows(() => children.changed.delete(id));
  const button = (/** @type {string} */ text, /** @type {() => void} */ onClick) =>
    html`<button type="button" aria-label=${`${text} ${titleOf(row)}`} onClick=${(/** @type {any} */ { currentTarget }) => {
      const [line, section] = [currentTarget.closest("tr"), currentTarget.closest("section")];
      onClick();
      requestAnimationFrame(() => (line.isConnected ? line.querySelector("input, button") : section.querySelector(":scope > button")).focus());
    }}>${text}</button>`;
  if (verb === "delete") return html`<tr><th scope="row"><del><code>${node?.key}</code></del></th>
    <td colspan=${attributes.length + 1}>${node?.name} will be deleted, if it has no children.</td><td>${button("Keep", () => mark("update"))}</td></tr>`;
  return html`<tr><th scope="row">${node ? html`<code>${node.key}</code>` : html`<${Field} label="Key" name=${`${id}.key`}
      value=${draft.key} required error=${errors[`${id}.key`]} onChange=${(/** @type {string} */ key) => set({ key })} />`}</th>
    <td><${Field} label="Name" name=${`${id}.name`} value=${draft.name} required error=${errors[`${id}.name`]}
      onChange=${(/** @type {string} */ name) => set({ name })} /></td>
    ${attributes.map((one) => html`<td key=${one.name}><${AttributeField} attribute=${one} row=${`${id}.`} value=${draft.values[one.name]}
      error=${errors[`${id}.${one.name}`]} onChange=${(/** @type {any} */ value) => set({ values: { ...draft.values, [one.name]: value } })} /></td>`)}
    <td>${!node ? button("Remove", drop) : html`${children.changed.has(id) && button("Undo", drop)}
      ${button("Delete", () => mark("delete"))}`}</td></tr>`;
}
