// Writing: the menu of a node's mutations, and the dialogs that other parts of the page open.
import { html } from "./vendor/preact.js";
import { draftOf, levelsBelow } from "./forms.js";
import { openWrite } from "./write_dialog.js";

/**
 * @typedef {import("./documents_writing.js").Api} Api
 * @typedef {import("./documents_writing.js").Hierarchy} Hierarchy
 * @typedef {import("./documents_writing.js").Verb} Verb
 */

/** @type {[Verb, string][]} */
const BUTTONS = [["create", "Add child"], ["update", "Edit"], ["rename", "Rename"], ["move", "Move"], ["reorder", "Reorder"], ["delete", "Delete"]];

/**
 * Buttons for what can be written here; none where the caller may write nothing. Without a node they create a root.
 * @param {{api: Api, hierarchy: Hierarchy, node: any, onDone: (path: string | null) => void}} props - `node` has path and level
 */
export function WriteMenu({ api, hierarchy, node, onDone }) {
  if (!hierarchy.mayWrite) return null;
  const open = async (/** @type {Verb} */ verb) => {
    const path = await openWrite({ api, hierarchy, verb, path: node?.path ?? null });
    if (path !== undefined) onDone(path);
  };
  const canAdd = levelsBelow({ hierarchy, node, draft: {} }).length > 0;
  const offered = node ? BUTTONS : /** @type {[Verb, string][]} */ ([["create", "Add root"]]);
  return html`<div class="write-menu" role="group" aria-label="Change ${node ? node.path : "the roots"}">
    ${offered.map(([verb, label]) => (verb !== "create" || canAdd) && html`<button type="button" key=${verb}
      onClick=${() => open(verb)}>${label}…</button>`)}
  </div>`;
}

/**
 * Opens the dialog of a move with its dry run, as after drag and drop; `to` is null for a root.
 * Resolves to the new path, or to undefined where nothing was moved.
 * @param {{api: Api, hierarchy: Hierarchy, path: string, to: string | null}} options
 */
export const openMove = ({ api, hierarchy, path, to }) =>
  openWrite({ api, hierarchy, verb: "move", path, draft: { to: to ?? "" } });

/**
 * Opens the dialog that writes the values of an earlier revision again, with its dry run.
 * @param {{api: Api, hierarchy: Hierarchy, path: string, revision: any}} options
 */
export const openRestore = ({ api, hierarchy, path, revision }) =>
  openWrite({ api, hierarchy, verb: "update", path, draft: draftOf(hierarchy, revision) });
