// Writing: the menu of a node's mutations. Their dialogs are loaded where the caller may write.
import { html, useEffect, useState } from "./vendor/preact.js";
import { levelsBelow } from "./documents.js";
import { sentence } from "./model.js";
import { Icon, State } from "./parts.js";
/** @import { Verb } from "./documents_writing" */
/** @import { Options, Written } from "./write_session" */

/** @type {[Verb, string][]} */
const BUTTONS = [["update", "Edit"], ["create", "Add child"], ["rename", "Rename"], ["move", "Move"], ["delete", "Delete"]];

/** @type {Partial<Record<Verb, string>>} the most frequent one first, and the one that takes away apart */
const LOOKS = { update: "primary", delete: "danger" };

const dialogs = () => import("./write_dialog.js");

/**
 * Opens the dialog of a mutation, with its dry run first where it has a draft.
 * Resolves to undefined where nothing was written.
 * @param {Options} options @returns {Promise<Written | undefined>}
 */
export const openWrite = async (options) => (await dialogs()).openDialog(options);

/**
 * Buttons for what can be written here; none where the caller may write nothing. Without a node they create a root.
 * @param {Pick<Options, "api" | "hierarchy"> & {node: any, onDone: (written: Written) => void}} props - `node` has path and level
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
      const written = await openWrite({ api, hierarchy, verb, path: node?.path ?? null });
      if (written) onDone(written);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  const canAdd = levelsBelow(hierarchy, node).length > 0;
  const offered = node ? BUTTONS : /** @type {[Verb, string][]} */ ([["create", "Add root"]]);
  return html`<div class="write-menu" role="group" aria-label="Change ${node ? node.path : "the roots"}">
    ${offered.map(([verb, label]) => (verb !== "create" || canAdd) && html`<button type="button" key=${verb} class=${LOOKS[verb] ?? ""}
      onClick=${() => open(verb)}><${Icon} name=${/** @type {any} */ (verb)} />${label}…</button>`)}
    ${error && html`<${State} kind="failed">${error}<//>`}
  </div>`;
}
