// History: the revisions of a node with what each changed, and the moves that brought it where it is.
import { html, useEffect, useState } from "./vendor/preact.js";
import { differences, draftOf, NOTHING } from "./forms.js";
import { levelOf, parentOf, storedAttributes, treeOf } from "./hierarchy.js";
import { openWrite } from "./node_view.js";
import { number, time } from "./words.js";
import { Differences } from "./write_dialog.js";
/** @import { Api } from "./api" */
/** @import { Hierarchy, Level } from "./hierarchy" */
/**
 * @typedef {{id: string, revisions: any[], end: string | null}} Pages
 * @typedef {{at: string, text?: string, revision?: any, before?: any}} Entry - a move as text, or a revision and the one before
 */

const PAGE = 20;
const MAX_PAGES = 20; // of a change feed
const MAX_TREES = 5;

/** @param {{api: Api, hierarchy: Hierarchy, node: any, onOpen: (path: string) => void}} props - `node` has path and level */
export function History({ api, hierarchy, node, onOpen }) {
  const [pages, setPages] = useState(/** @type {Pages | null} */ (null));
  const [moves, setMoves] = useState(/** @type {Entry[] | null} */ (null));
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
      <span role="status">${moves && !moves.length && "No moves in the last 90 days."}</span>
    </div>
    ${problem}
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
    for (const { nodeId, from, to, at } of await movesIn(api, hierarchy, tree)) {
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
 * The moves of a tree, newest first.
 * @param {Api} api @param {Hierarchy} hierarchy @param {string} tree
 * @returns {Promise<{nodeId: string, from: string, to: string, at: string}[]>}
 */
async function movesIn(api, hierarchy, tree) {
  const moves = [];
  /** @type {string | null} */
  let after = null;
  for (let page = 0; page < MAX_PAGES; page++) {
    /** @type {any} */
    const { changes, cursor, hasMore } = (await api.ask(CHANGES, { hierarchy: hierarchy.name, tree, after })).data.changes;
    moves.push(...changes.filter((/** @type {any} */ one) => one.event === "MOVED"));
    if (!hasMore) break;
    after = cursor;
  }
  return moves.reverse();
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

/** The changes of a tree, oldest first. */
export const CHANGES = `query changes($hierarchy: HierarchyName!, $tree: Path!, $after: String) {
  changes(hierarchy: $hierarchy, tree: $tree, after: $after) {
    changes { event nodeId from to at } cursor hasMore
  }
}`;
