// Writing: the menu of a node's mutations. Their dialogs are loaded where the caller may write.
import { html, useEffect, useState } from "./vendor/preact.js";
import { levelsBelow } from "./documents.js";
import { sentence } from "./model.js";
/** @import { Verb } from "./documents_writing" */
/** @import { Options } from "./write_session" */

/** @type {[Verb, string][]} */
const BUTTONS = [["update", "Edit"], ["create", "Add child"], ["rename", "Rename"], ["move", "Move"], ["reorder", "Reorder"], ["delete", "Delete"]];

/** @type {Partial<Record<Verb, string>>} the most frequent one first, and the one that takes away apart */
const LOOKS = { update: "primary", delete: "danger" };

const dialogs = () => import("./write_dialog.js");

/**
 * Opens the dialog of a mutation, with its dry run first where it has a draft.
 * Resolves to the path to show next, null for the roots, or undefined where nothing was written.
 * @param {Options} options @returns {Promise<string | null | undefined>}
 */
export const openWrite = async (options) => (await dialogs()).openDialog(options);

/**
 * Buttons for what can be written here; none where the caller may write nothing. Without a node they create a root.
 * @param {Pick<Options, "api" | "hierarchy"> & {node: any, onDone: (path: string | null) => void}} props - `node` has path and level
 */
export function WriteMenu({ api, hierarchy, node, onDone }) {
  const [error, setError] = useState("");
  useEffect(() => {
    if (hierarchy.mayWrite) dialogs().catch(() => {}); // a click tries again
  }, [hierarchy]);
  if (!hierarchy.mayWrite) return null;
  const open = async (/** @type {Verb} */ verb) => {
    setError("");
    try {
      const path = await openWrite({ api, hierarchy, verb, path: node?.path ?? null });
      if (path !== undefined) onDone(path);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  const canAdd = levelsBelow(hierarchy, node).length > 0;
  const offered = node ? BUTTONS : /** @type {[Verb, string][]} */ ([["create", "Add root"]]);
  return html`<div class="write-menu" role="group" aria-label="Change ${node ? node.path : "the roots"}">
    ${offered.map(([verb, label]) => (verb !== "create" || canAdd) && html`<button type="button" key=${verb} class=${LOOKS[verb] ?? ""}
      onClick=${() => open(verb)}>${label}…</button>`)}
    ${error && html`<p class="write-error" role="alert">${error}</p>`}
  </div>`;
}
