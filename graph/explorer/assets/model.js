// What the page has read of a hierarchy: families, each the children of a node page by page, and the node that is shown.
import { ApiError } from "./api.js";
import { documents, PAGE } from "./documents.js";
import { isPlain, listKey, variablesOf } from "./view.js";
import { parentOf, prefixes } from "./words.js";
/** @import { Api, GraphQLError, Hierarchy } from "./api" */
/** @import { AboveQuery, ChildrenQuery, NodeQuery, RootsQuery } from "./types" */
/** @import { View } from "./view" */

/** A node in a list. The other members are counts by level and attributes.
 * @typedef {{path: string, key: string, name: string, level: string, childCount: number | null} & Record<string, any>} Row */
/** @typedef {{field: string, direction: "ASC" | "DESC"}} Order */
/** @typedef {{nodes: Row[], pageInfo: {hasNextPage: boolean, endCursor?: string | null}, totalCount?: number | null}} List */

const MAX_DEPTH = 10; // of a line in the tree
const MAX_PAGES = 5; // of a family that is read again; the rest comes when it is scrolled into view

const isOfChildren = (/** @type {GraphQLError} */ error) => error.path?.[0] === "node" && error.path[1] === "children";

/** The children of the node at `path`, or the roots where it is empty, as far as they are loaded; or as a view lists them. */
export class Family {
  /** @param {string} path @param {View | null} [view] @param {number} [first] nodes of a page */
  constructor(path, view = null, first = PAGE) {
    this.path = path;
    this.view = view;
    this.first = first;
    /** @type {number | null} how many there are, where that was read. */
    this.total = null;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Row[]} rows that were reached by their address, and come somewhere after those that are loaded. */
    this.later = [];
    /** @type {string | null} */
    this.cursor = null;
    this.hasMore = true;
    /** @type {Promise<void> | null} the page that is under way. */
    this.loading = null;
    this.error = "";
    /** Whether it could not be read again after a change. */
    this.isStale = false;
    this.paths = new Set();
  }

  /** Append a page. @param {List} list */
  take({ nodes, pageInfo, totalCount }) {
    this.total = totalCount ?? this.total;
    const fresh = nodes.filter((row) => !this.paths.has(row.path));
    fresh.forEach((row) => this.paths.add(row.path));
    this.rows = [...this.rows, ...fresh];
    this.later = this.later.filter((row) => !this.paths.has(row.path));
    this.cursor = pageInfo.endCursor ?? null;
    this.hasMore = pageInfo.hasNextPage;
    this.error = "";
  }
}

export class Model {
  /** @type {{path: string, node: Promise<Row | null>} | null} what `begin` began. */
  #begun = null;

  /** @param {Api} api @param {Hierarchy} hierarchy @param {() => void} changed called when something was loaded */
  constructor(api, hierarchy, changed) {
    this.api = api;
    this.hierarchy = hierarchy;
    this.changed = changed;
    this.documents = documents(hierarchy);
    /** @type {Map<string, Family>} */
    this.families = new Map();
    /** @type {Set<string>} paths of the nodes whose children the tree shows. */
    this.expanded = new Set();
    /** The path of the node at which the tree begins: deep nodes are shown below one of their ancestors. */
    this.root = "";
    /** The key of the list that is shown, which is read again after a change. */
    this.shown = "";
  }

  /** The family of a path in the order of the hierarchy. @param {string} path */
  family(path) {
    const found = this.families.get(path) ?? new Family(path);
    this.families.set(path, found);
    return found;
  }

  /** The nodes at a path as a view lists them. @param {string} path @param {View} view @returns {Family} */
  list(path, view) {
    this.shown = isPlain(view) ? path : `${path}//${listKey(view)}`; // no path has an empty segment
    const found = this.families.get(this.shown) ?? new Family(path, isPlain(view) ? null : view);
    this.families.set(this.shown, found);
    return found;
  }

  /** Load the next page of a family, if there is one; a page that is under way is awaited. @param {Family} family */
  async load(family) {
    if (!family.loading && !family.hasMore) return;
    family.loading ??= this.#load(family);
    await family.loading;
  }

  /** @param {Family} family */
  async #load(family) {
    this.changed();
    try {
      const list = await this.#page(family);
      if (list) family.take(list);
      else family.hasMore = false;
    } catch (error) {
      family.error = sentence(error);
    }
    family.loading = null;
    this.changed();
  }

  /** Load again what could not be loaded. @param {Family} family */
  async retry(family) {
    if (family.isStale) await this.refresh();
    else await this.load(family);
  }

  /** Load the first page of the children of a path, unless it is there. @param {string} path */
  async first(path) {
    const family = this.family(path);
    if (!family.rows.length) await this.load(family);
  }

  /** @param {Family} family */
  async #page(family) {
    const { document, variables } = this.queryOf(family);
    const { data } = await this.api.ask(document, variables);
    const { list, node } = /** @type {ChildrenQuery & RootsQuery} */ (data);
    if (!family.path) return list;
    return node?.path === family.path ? node.children : null; // a former path leads to another node
  }

  /**
   * The first pages of the roots and of the children of all nodes above a path, each with the path of its family.
   * @param {string} path @returns {Promise<[string, List | null | undefined][]>}
   */
  async #above(path) {
    const { data } = await this.api.ask(this.documents.above, { path, first: PAGE });
    const { list, node } = /** @type {AboveQuery} */ (data);
    return [["", list], ...(node?.ancestors ?? []).map((one) => /** @type {[string, List | null | undefined]} */ ([one.path, one.children]))];
  }

  /** Load families above a path by one query. @param {string} path @param {Family[]} families */
  async #loadAbove(path, families) {
    this.changed();
    try {
      for (const [one, list] of await this.#above(path)) {
        if (list && !this.family(one).rows.length) this.family(one).take(list);
      }
    } catch (error) {
      families.forEach((family) => (family.error = sentence(error)));
    }
    families.forEach((family) => (family.loading = null));
    this.changed();
  }

  /**
   * The query of the next page of a family. Throws ApiError for a condition that is none.
   * @param {Family} family @returns {{document: string, variables: Record<string, unknown>}}
   */
  queryOf({ path, view, first, cursor }) {
    const { roots, children, below } = this.documents;
    const given = view ? variablesOf(this.hierarchy, view) : {};
    const total = !cursor && (!path || view !== null); // of children the node says how many there are
    return {
      document: !path ? roots : view?.isBelow ? below : children,
      variables: { ...(path && { path }), first, after: cursor, total, ...given },
    };
  }

  /**
   * The node at a path, null without one, with its children as a family, whose error does not hide the node. Throws
   * ApiError.
   * @param {string} path @returns {Promise<Row | null>}
   */
  async #node(path) {
    const variables = { path, first: PAGE, after: null };
    const { data, errors } = await this.api.ask(this.documents.node, variables, isOfChildren);
    const found = /** @type {NodeQuery} */ (data).node;
    if (!found) return null;
    const { children, ...node } = found;
    if (children) this.#renew(node.path, { ...children, totalCount: found.childCount });
    else this.family(node.path).error = errors[0]?.message ?? "";
    return node;
  }

  /** Take the first page of a family anew, unless more of it was loaded. @param {string} path @param {any} list */
  #renew(path, list) {
    const old = this.family(path);
    if (old.rows.length > PAGE) return;
    const family = new Family(path);
    family.later = old.later;
    family.take(list);
    this.families.set(path, family);
  }

  /**
   * The families that the tree shows above a path. Those above a root that was read are left out: a grant may begin below
   * the root of a tree, and what is above it cannot be read.
   * @param {string} path
   */
  #pathsAbove(path) {
    const paths = prefixes(path);
    const root = paths.findIndex((one) => this.family("").paths.has(one));
    return ["", ...paths.slice(Math.max(root, 0), -1)];
  }

  /** Begin to open the path that is shown first. @param {string} path */
  begin(path) {
    this.#begun = { path, node: this.open(path) };
    this.#begun.node.catch(() => {}); // whoever opens it sees the error
  }

  /**
   * The node at a path, null without one. What the tree shows above it is read at the same time, by one query however
   * deep the node is. Throws ApiError.
   * @param {string} path @returns {Promise<Row | null>}
   */
  async open(path) {
    const begun = this.#begun;
    this.#begun = null;
    if (begun?.path === path) return begun.node;
    const missing = this.#pathsAbove(path).map((one) => this.family(one)).filter((family) => !family.rows.length && !family.loading);
    const above = missing.length > 1 ? this.#loadAbove(path, missing) : Promise.all(missing.map((family) => this.load(family)));
    if (missing.length > 1) missing.forEach((family) => (family.loading = above.then(() => {})));
    const node = path ? await this.#node(path) : null;
    if (node) this.#reveal(node, above);
    return node;
  }

  /** Show a node in the tree: load and expand what is above it. @param {Row} node @param {Promise<unknown>} loading */
  async #reveal(node, loading) {
    /** @type {Row[]} from the root of the caller, which may be below that of the tree. */
    const ancestors = node.ancestors ?? [];
    const above = ancestors.map(({ path }) => path);
    [...above, node.path].forEach((path) => this.expanded.add(path));
    if (this.root !== node.path && !above.includes(this.root)) this.root = "";
    const depth = above.length - Math.max(0, above.indexOf(this.root));
    if (depth >= MAX_DEPTH) this.root = above[above.length - MAX_DEPTH / 2];
    await loading;
    await Promise.all(["", ...above].map((path) => this.first(path)));
    const shown = [...ancestors.map((one) => ({ ...one, childCount: null })), node];
    for (const [place, row] of shown.entries()) {
      const family = this.family(["", ...above][place]);
      const isThere = family.paths.has(row.path) || family.later.some((one) => one.path === row.path);
      if (!isThere) family.later = [...family.later, row];
    }
    this.changed();
  }

  /** Show or hide the children of a row in the tree. @param {Row} row @param {boolean} [open] */
  async toggle(row, open = !this.expanded.has(row.path)) {
    if (open) this.expanded.add(row.path);
    else this.expanded.delete(row.path);
    this.changed();
    if (open) await this.first(row.path);
  }

  /** Begin the tree at a node, or at the roots. @param {string} path */
  async beginAt(path) {
    this.root = path;
    this.changed();
    await this.first(path);
  }

  /** Hide the children of all nodes in the tree. */
  collapse() {
    this.expanded.clear();
    this.beginAt("");
  }

  /** Read again what is shown, since something was written; what was read before is shown until all is there. */
  async refresh() {
    const isShown = (/** @type {[string, Family]} */ [key]) => !key || key === this.shown || this.expanded.has(key);
    const fresh = await Promise.all([...this.families].filter(isShown).map(async ([key, old]) =>
      /** @type {[string, Family]} */ ([key, await this.#again(old)])));
    this.families = new Map(fresh);
    this.changed();
  }

  /** A family, read again as far as it was, or to MAX_PAGES; the old one if that fails. @param {Family} old */
  async #again(old) {
    const family = new Family(old.path, old.view, old.first);
    const isShort = () => family.rows.length < Math.min(old.rows.length, MAX_PAGES * PAGE);
    do await this.load(family);
    while (isShort() && family.hasMore && !family.error);
    if (family.error && old.rows.length) return Object.assign(old, { error: family.error, isStale: true });
    family.later = old.later.filter(({ path }) => family.hasMore && !family.paths.has(path));
    return family;
  }
}

/** @param {unknown} error @returns {string} */
export const sentence = (error) => (error instanceof ApiError ? error.message : `The page failed: ${error}`);

/** Whether a row can have children. @param {Row} row */
export const isParent = (row) => row.childCount === null || row.childCount > 0;

/**
 * One line of the tree: a node; or without a row the end of what is loaded of a family, or with `to` where else the tree
 * can begin.
 * @typedef {{row: Row | null, to?: string, family: Family, depth: number, position: number}} Line
 */

/** The lines of the tree from top to bottom. @param {Model} model @returns {Line[]} */
export function linesOf(model) {
  /** @type {Line[]} */
  const lines = [];
  const add = (/** @type {Row} */ row, /** @type {Family} */ family, /** @type {number} */ depth, /** @type {number} */ place) => {
    lines.push({ row, family, depth, position: place + 1 });
    if (!model.expanded.has(row.path) || !isParent(row)) return;
    if (depth + 1 < MAX_DEPTH) walk(row.path, depth + 1);
    else lines.push({ row: null, to: row.path, family, depth: depth + 1, position: 1 });
  };
  const walk = (/** @type {string} */ path, /** @type {number} */ depth) => {
    const family = model.family(path);
    family.rows.forEach((row, place) => add(row, family, depth, place));
    if (family.hasMore || family.error) lines.push({ row: null, family, depth, position: family.rows.length + 1 });
    family.later.forEach((row, place) => add(row, family, depth, family.rows.length + place));
  };
  if (!model.root) walk("", 0);
  else {
    const family = model.family(parentOf(model.root));
    const row = [...family.rows, ...family.later].find(({ path }) => path === model.root);
    const to = prefixes(model.root).at(-MAX_DEPTH) ?? "";
    lines.push({ row: null, to, family, depth: 0, position: 1 });
    if (row) add(row, family, 0, 0);
    else walk(model.root, 0);
  }
  return lines;
}
