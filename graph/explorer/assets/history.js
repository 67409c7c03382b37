/** History: the revisions of a node with what each changed, and the moves of its tree that concerned it. */

import { html, useEffect, useState } from "./vendor/preact.js";
import { CHANGES, history, levelOf } from "./documents_writing.js";
import { differences } from "./values.js";
import { Differences } from "./write_dialog.js";
import { openRestore } from "./writing.js";

const PAGE = 20;
const MAX_PAGES = 20; // of the change feed

/**
 * @typedef {import("./documents_writing.js").Api} Api
 * @typedef {import("./documents_writing.js").Hierarchy} Hierarchy
 * @typedef {{at: string, text: string}} Moved
 * @typedef {{revisions: any[], id: string, end: string | null, total: number}} Pages
 */

/** @param {{api: Api, hierarchy: Hierarchy, node: any, onOpen: (path: string) => void}} props - `node` has path and level */
export function History({ api, hierarchy, node, onOpen }) {
  const level = levelOf(hierarchy, node.level);
  const [pages, setPages] = useState(/** @type {Pages | null} */ (null));
  const [moves, setMoves] = useState(/** @type {Moved[] | null} */ (null));
  const [error, setError] = useState("");
  const failed = (/** @type {Error} */ one) => setError(one.message);

  const load = async (/** @type {Pages | null} */ old) => {
    const { data } = await api.ask(history(hierarchy, level), { path: node.path, first: PAGE, after: old?.end ?? null });
    const { nodes, pageInfo, totalCount } = data.node.history;
    const end = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    return { revisions: [...(old?.revisions ?? []), ...nodes], id: data.node.id, end, total: totalCount };
  };
  useEffect(() => {
    let isCurrent = true;
    setPages(null);
    setMoves(null);
    setError("");
    load(null).then((found) => isCurrent && setPages(found), (one) => isCurrent && failed(one));
    return () => void (isCurrent = false);
  }, [hierarchy.name, node.path, node.revision]);

  if (!pages) return html`<div class="history">${error ? html`<p class="write-error">${error}</p>` : html`<p>Reading…</p>`}</div>`;
  const restore = async (/** @type {any} */ revision) => {
    const path = await openRestore({ api, hierarchy, path: node.path, revision });
    if (path) onOpen(path);
    if (path) load(null).then(setPages, failed);
  };
  const shownOnes = pages.end ? pages.revisions.slice(0, -1) : pages.revisions; // the last one's own change is not read yet
  const entries = [
    ...shownOnes.map((one, place) => ({ at: one.changedAt, revision: one, before: pages.revisions[place + 1] })),
    ...(moves ?? []).filter((one) => !pages.end || one.at >= shownOnes[shownOnes.length - 1].changedAt),
  ].sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0));
  return html`<div class="history">
    <ol>${entries.map((one) => html`<li key=${one.revision?.revision ?? `${one.at} ${one.text}`}>
      <${Entry} ...${one} level=${level} onRestore=${hierarchy.mayWrite && one.revision !== pages.revisions[0] && one.revision && restore} /></li>`)}
    </ol>
    <p class="history-end">
      ${pages.end && html`<button type="button" onClick=${() => load(pages).then(setPages, failed)}>Older revisions</button>`}
      ${!moves && html`<button type="button" onClick=${() => movesOf(api, hierarchy, node.path, pages.id).then(setMoves, failed)}>Moves of the last 90 days</button>`}
      ${moves && !moves.length && html`<span role="status">No moves in the last 90 days.</span>`}
      ${error && html`<span class="write-error" role="alert">${error}</span>`}
    </p>
  </div>`;
}

/** @param {any} props */
function Entry({ at, revision, before, text, level, onRestore }) {
  const time = html`<time datetime=${at}>${new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}</time>`;
  if (!revision) return html`<p>${time}</p><p>${text}</p>`;
  const rows = differences(level, before ?? { names: [] }, revision);
  return html`<p>${time}${revision.changedBy && ` by ${revision.changedBy}`} · revision ${revision.revision}
      ${onRestore && html` <button type="button" aria-label="Restore revision ${revision.revision}"
        onClick=${() => onRestore(revision)}>Restore…</button>`}</p>
    ${before ? rows.length ? html`<${Differences} rows=${rows} />` : html`<p>Written again without a difference.</p>`
      : html`<p>Created</p><dl class="differences">${rows.map((row) => html`<div key=${row.label}><dt>${row.label}</dt><dd>${row.after}</dd></div>`)}</dl>`}`;
}

/**
 * The moves, renames and changes of order of a node, and the moves of nodes above it, newest first.
 * @param {Api} api
 * @param {Hierarchy} hierarchy
 * @param {string} path
 * @param {string} id
 * @returns {Promise<Moved[]>}
 */
async function movesOf(api, hierarchy, path, id) {
  /** @type {Moved[]} */
  const found = [];
  let since = null;
  for (let page = 0; page < MAX_PAGES; page++) {
    const variables = { hierarchy: hierarchy.name, tree: path.split("/")[0], under: path, since };
    const { changes, cursor, hasMore } = (await api.ask(CHANGES, variables)).data.changes;
    for (const one of changes) {
      const isOwn = one.nodeId === id;
      if (one.event !== "MOVED" || !(isOwn || (one.from !== one.to && path.startsWith(`${one.to}/`)))) continue;
      const [from, to] = [one.from, one.to].map((text) => text.split("/").slice(0, -1).join("/"));
      const what = one.from === one.to ? "Reordered" : from === to ? "Renamed" : "Moved";
      found.unshift({ at: one.at, text: one.from === one.to ? what : `${what}${isOwn ? "" : ", above it"}: ${one.from} → ${one.to}` });
    }
    if (!hasMore) break;
    since = cursor;
  }
  return found;
}
