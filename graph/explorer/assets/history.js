// History: the revisions of a node with what each changed, the moves that brought it where it is, and what was deleted
// below it.
import { html, useEffect, useState } from "./vendor/preact.js";
import { differences, draftOf, NOTHING } from "./forms.js";
import { deletedNodes, levelOf, levelsBelow, parentOf, storedAttributes, treeOf } from "./hierarchy.js";
import { openWrite } from "./node_view.js";
import { number, quantity, time } from "./words.js";
import { Differences } from "./write_dialog.js";
/** @import { Api } from "./api" */
/** @import { Deleted, Hierarchy, Level } from "./hierarchy" */
/**
 * @typedef {{id: string, revisions: any[], end: string | null}} Pages
 * @typedef {{at: string, text?: string, revision?: any, before?: any}} Entry - a move as text, or a revision and the one before
 * @typedef {{nodeId: string | null, path: string, from: string, to: string, at: string}} Change
 * @typedef {Change & {gone?: Deleted | null}} Deletion - `gone` is null where the node is deleted no more, or cannot be seen
 */

export const PAGE = 20; // of revisions, and of deletions: a document has at most 30 aliases
const MAX_PAGES = 100; // of a change feed, each of at most 100 transactions
const MAX_TREES = 5;

/** @param {{api: Api, hierarchy: Hierarchy, node: any, onOpen: (path: string) => void}} props - `node` has path and level */
export function History({ api, hierarchy, node, onOpen }) {
  const [pages, setPages] = useState(/** @type {Pages | null} */ (null));
  const [moves, setMoves] = useState(/** @type {Entry[] | null} */ (null));
  const [isOfDeletions, setOfDeletions] = useState(false);
  const [error, setError] = useState("");
  const level = levelOf(hierarchy, node.level);
  const failed = (/** @type {Error} */ one) => setError(one.message);
  const load = (/** @type {Pages | null} */ old) => revisionsOf(api, hierarchy, level, node.path, old);
  useEffect(() => {
    let isCurrent = true;
    setPages(null);
    setMoves(null);
    setError("");
    load(null).then((found) => isCurrent && setPages(found), (one) => isCurrent && failed(one));
    return () => void (isCurrent = false);
  }, [hierarchy.name, node.path, node.revision]);

  const restore = async (/** @type {any} */ revision) => {
    setError("");
    try {
      const path = await openWrite({ api, hierarchy, verb: "update", path: node.path, draft: draftOf(hierarchy, revision) });
      if (path) onOpen(path);
    } catch (failure) {
      failed(/** @type {Error} */ (failure));
    }
  };
  const problem = error && html`<p class="write-error" role="alert">${error}</p>`;
  if (!pages) return html`<div class="history">${problem || html`<p>Reading…</p>`}</div>`;
  return html`<div class="history">
    <ol>${entriesOf(pages, moves ?? []).map((one) => html`<li key=${one.revision?.revision ?? `${one.at} ${one.text}`}>
      <${Entry} ...${one} level=${level} onRestore=${hierarchy.mayWrite && one.revision !== pages.revisions[0] && restore} />
    </li>`)}</ol>
    <div class="history-end">
      ${pages.end && html`<button type="button" onClick=${() => load(pages).then(setPages, failed)}>Older revisions</button>`}
      ${!moves && html`<button type="button"
        onClick=${() => movesOf(api, hierarchy, node.path, pages.id).then(setMoves, failed)}>Moves of the last 90 days</button>`}
      ${!isOfDeletions && levelsBelow(hierarchy, node).length > 0 && html`<button type="button"
        onClick=${() => setOfDeletions(true)}>Deletions of the last 90 days</button>`}
      <span role="status">${moves && !moves.length && "No moves in the last 90 days."}</span>
    </div>
    ${problem}
    ${isOfDeletions && html`<${Deletions} key=${node.descendantCount} api=${api} hierarchy=${hierarchy} node=${node} onOpen=${onOpen} />`}
  </div>`;
}

/**
 * What was deleted at a node and below it, newest first; without a node, which roots.
 * @param {{api: Api, hierarchy: Hierarchy, node: any, onOpen: (path: string) => void}} props
 */
export function Deletions({ api, hierarchy, node, onOpen }) {
  const [found, setFound] = useState(/** @type {{deletions: Deletion[], until: string} | null} */ (null));
  const [shown, setShown] = useState(0);
  const [error, setError] = useState("");
  const failed = (/** @type {Error} */ one) => setError(one.message);
  const more = async ({ deletions, until } = /** @type {NonNullable<typeof found>} */ (found)) => {
    const page = await withNodes(api, deletions.slice(shown, shown + PAGE));
    setFound({ deletions: deletions.toSpliced(shown, page.length, ...page), until });
    setShown(shown + page.length);
  };
  useEffect(() => void deletionsOf(api, hierarchy, node?.path).then(more).catch(failed), []);
  const restore = async (/** @type {Deleted} */ { nodeId, path }) => {
    setError("");
    try {
      const to = await openWrite({ api, hierarchy, verb: "restore", path, id: nodeId });
      if (to) onOpen(to);
    } catch (failure) {
      failed(/** @type {Error} */ (failure));
    }
  };
  const deletions = found?.deletions ?? [];
  return html`<div class="history">
    <ol aria-label="Deletions of the last 90 days">${deletions.slice(0, shown).map(({ at, path, gone }) => html`<li key=${`${at} ${path}`}>
      <p class="history-head"><time datetime=${at}>${time(at)}</time>${gone?.deletedBy && ` · by ${gone.deletedBy}`}
        ${gone && hierarchy.mayWrite && html`<button type="button" aria-label="Restore ${path}" onClick=${() => restore(gone)}>Restore…</button>`}</p>
      <p>${path} was deleted${gone?.descendantCount ? `, with ${quantity(gone.descendantCount, "descendant")}` : ""}${gone
        ? "" : "; it was restored since, or you may not see it"}.</p>
    </li>`)}</ol>
    <div class="history-end">
      ${shown < deletions.length && html`<button type="button" onClick=${() => more().catch(failed)}>Older deletions</button>`}
      <span role="status">${!found && !error && "Reading…"} ${found && !deletions.length && "No deletions in the last 90 days that you may see."}
        ${found?.until && `Deletions after ${time(found.until)} are not listed, since there are too many changes; restore their nodes by the API.`}</span>
    </div>
    ${error && html`<p class="write-error" role="alert">${error}</p>`}
  </div>`;
}

/** @param {Entry & {level: Level, onRestore: ((revision: any) => void) | false}} props */
function Entry({ at, revision, before, text, level, onRestore }) {
  const when = html`<time datetime=${at}>${time(at)}</time>`;
  if (!revision) return html`<p class="history-head">${when}</p><p>${text}</p>`;
  const rows = differences(level, before ?? NOTHING, revision);
  return html`<p class="history-head">${when} · revision ${number(revision.revision)}${revision.changedBy && `, by ${revision.changedBy}`}
      ${onRestore && html`<button type="button" aria-label="Restore revision ${revision.revision}"
        onClick=${() => onRestore(revision)}>Restore…</button>`}</p>
    ${rows.length ? html`<${Differences} rows=${rows} side=${before ? undefined : "after"} />` : html`<p>No difference.</p>`}`;
}

/**
 * Revisions and moves, newest first. While there are older revisions, the last that was read waits for the one before it.
 * @param {Pages} pages @param {Entry[]} moves
 */
function entriesOf({ revisions, end }, moves) {
  const seen = end ? revisions.slice(0, -1) : revisions;
  const oldest = seen[seen.length - 1]?.changedAt ?? "";
  /** @type {Entry[]} */
  const entries = seen.map((one, place) => ({ at: one.changedAt, revision: one, before: revisions[place + 1] }));
  entries.push(...moves.filter((one) => !end || one.at >= oldest));
  return entries.sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0));
}

/**
 * The revisions that were read so far, with the next page.
 * @param {Api} api @param {Hierarchy} hierarchy @param {Level} level @param {string} path @param {Pages | null} old
 * @returns {Promise<Pages>}
 */
async function revisionsOf(api, hierarchy, level, path, old) {
  const { data } = await api.ask(history(hierarchy, level), { path, first: PAGE, after: old?.end ?? null });
  if (!data.node?.history) throw new Error(`The history of ${path} cannot be read.`);
  const { nodes, pageInfo } = data.node.history;
  return { id: data.node.id, revisions: [...(old?.revisions ?? []), ...nodes], end: pageInfo.hasNextPage ? pageInfo.endCursor : null };
}

/**
 * The moves, renames and changes of order of a node and of those above it, by the change feeds: from the newest back, each
 * is looked for at the path of that time, and in the tree of that time.
 * @param {Api} api @param {Hierarchy} hierarchy @param {string} path @param {string} id
 * @returns {Promise<Entry[]>}
 */
async function movesOf(api, hierarchy, path, id) {
  const found = [];
  let tree = "";
  let end = "~"; // after all times
  for (let trees = 0; trees < MAX_TREES && tree !== treeOf(path); trees++) {
    tree = treeOf(path);
    for (const { nodeId, from, to, at } of (await changesOf(api, hierarchy, { tree }, "MOVED")).changes) {
      const isOwn = nodeId === id && path === to;
      if (at > end || (!isOwn && (from === to || !path.startsWith(`${to}/`)))) continue;
      path = from + path.slice(to.length);
      const what = from === to ? "Reordered" : parentOf(from) === parentOf(to) ? "Renamed" : "Moved";
      found.push({ at, text: from === to ? what : `${what}${isOwn ? "" : " with a node above it"}: ${from} → ${to}` });
      end = at;
      if (tree !== treeOf(path)) break;
    }
  }
  return found;
}

/**
 * The changes of one kind of a tree, newest first, and until when they were read, "" where these are all.
 * @param {Api} api @param {Hierarchy} hierarchy @param {{tree?: string, under?: string}} where @param {string} kind
 * @returns {Promise<{changes: Change[], until: string}>}
 */
async function changesOf(api, hierarchy, where, kind) {
  const found = [];
  /** @type {string | null} */
  let after = null;
  let until = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    /** @type {any} */
    const { changes, cursor, hasMore } = (await api.ask(CHANGES, { hierarchy: hierarchy.name, ...where, after })).data.changes;
    found.push(...changes.filter((/** @type {any} */ one) => one.event === kind));
    until = hasMore ? changes[changes.length - 1]?.at ?? until : "";
    if (!hasMore) break;
    after = cursor;
  }
  return { changes: found.reverse(), until };
}

/** The deletions at a path and below it, newest first; without one, those of roots. @param {Api} api @param {Hierarchy} hierarchy @param {string} [path] */
async function deletionsOf(api, hierarchy, path) {
  const { changes, until } = await changesOf(api, hierarchy, path ? { tree: treeOf(path), under: path } : {}, "DELETED");
  const last = new Map(changes.toReversed().map((one) => [one.nodeId, one]));
  // What was deleted once more is deleted as its last deletion says.
  return { deletions: changes.map((one) => (last.get(one.nodeId) === one ? one : { ...one, nodeId: null })), until };
}

/** Some deletions with their nodes. @param {Api} api @param {Deletion[]} deletions @returns {Promise<Deletion[]>} */
async function withNodes(api, deletions) {
  const ids = deletions.map((one) => one.nodeId).filter((id) => id !== null);
  const { data } = ids.length ? await api.ask(deletedNodes(ids.length), Object.fromEntries(ids.map((id, place) => [`id${place}`, id]))) : { data: {} };
  return deletions.map((one) => ({ ...one, gone: data[`gone${ids.indexOf(one.nodeId ?? "")}`] ?? null }));
}

/**
 * The fields of a revision for the stored attributes of a level. Where another level has the name with another type,
 * the field is the level's own, such as cityCode. @param {Hierarchy} hierarchy @param {Level} level
 */
function attributesOfRevision(hierarchy, level) {
  const all = hierarchy.levels.flatMap((one) => one.attributes);
  return storedAttributes(level).map(({ name, type, selection }) => {
    const isOne = all.every((one) => one.name !== name || one.type === type);
    return `${isOne ? name : `${name}: ${level.inputField}${name[0].toUpperCase()}${name.slice(1)}`} ${selection ?? ""}`;
  }).join(" ");
}

/** Revisions of a node, newest first. @param {Hierarchy} hierarchy @param {Level} level */
export const history = (hierarchy, level) => `query history($path: Path!, $first: Int!, $after: String) {
  node: ${hierarchy.field}(path: $path) {
    id
    history(first: $first, after: $after) {
      totalCount pageInfo { hasNextPage endCursor }
      nodes {
        revision changedAt changedBy name names { language text } level
        ${attributesOfRevision(hierarchy, level)}
      }
    }
  }
}`;

/** The changes of a tree, or of one subtree; without a tree those of the list of roots, oldest first. */
export const CHANGES = `query changes($hierarchy: HierarchyName!, $tree: Path, $under: Path, $after: String) {
  changes(hierarchy: $hierarchy, tree: $tree, under: $under, after: $after) {
    changes { event nodeId path from to at } cursor hasMore
  }
}`;
