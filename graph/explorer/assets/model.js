// What the page has read of a hierarchy: families, each the children of a node page by page, and the node that is shown.
import { ApiError } from "./api.js";
import { documents, PAGE } from "./documents.js";
import { parentOf, prefixes } from "./words.js";
/** @import { Answer, Api, GraphQLError, Hierarchy } from "./api" */
/** @import { NodeQuery, RootsQuery } from "./types" */

/** A node in a list; `stub` where only its name may be read. The other members are counts by level and attributes.
 * @typedef {{path: string, key: string, name: string, level: string, childCount: number | null, stub?: boolean} &
 *   Record<string, any>} Row */
/** @typedef {{field: string, direction: "ASC" | "DESC"}} Order */

const MAX_PAGES = 5; // of a family that is read again; the rest comes when it is scrolled into view

const isForbidden = (/** @type {GraphQLError[]} */ errors) =>
  errors.some((error) => error.extensions?.code === "FORBIDDEN");

/** The children of the node at `path`, or the roots where it is empty, as far as they are loaded. */
export class Family {
  /** @param {string} path @param {Order | null} [order] */
  constructor(path, order = null) {
    this.path = path;
    this.order = order;
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
    this.paths = new Set();
  }

  /** Append a page. @param {{nodes: Row[], pageInfo: {hasNextPage: boolean, endCursor?: string | null}}} list */
  take({ nodes, pageInfo }) {
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
  }

  /** The family of a path in the order of the hierarchy. @param {string} path */
  family(path) {
    const found = this.families.get(path) ?? new Family(path);
    this.families.set(path, found);
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

  /** Load the first page of the children of a path, unless it is there. @param {string} path */
  async first(path) {
    const family = this.family(path);
    if (!family.rows.length) await this.load(family);
  }

  /** @param {Family} family */
  async #page(family) {
    const { roots, children, stubRoots, stub } = this.documents;
    const variables = this.#variables(family);
    const list = (/** @type {NodeQuery & RootsQuery} */ data) => {
      if (!family.path) return data.list;
      return data.node?.path === family.path ? data.node.children : null; // a former path leads to another node
    };
    const { data, errors } = await this.#try(family.path ? children : roots, variables);
    if (!isForbidden(errors)) return list(data);
    const names = list((await this.api.ask(family.path ? stub : stubRoots, variables)).data);
    return names && { ...names, nodes: await this.#known(names.nodes) };
  }

  /** @param {Family} family */
  #variables(family) {
    const page = { first: PAGE, after: family.cursor, orderBy: family.order && [family.order] };
    return family.path ? { path: family.path, ...page } : page;
  }

  /**
   * The answer also where everything in it was refused, which stubs cause.
   * @param {string} document @param {object} variables @returns {Promise<Answer<any>>}
   */
  async #try(document, variables) {
    try {
      return await this.api.ask(document, { ...variables });
    } catch (error) {
      if (error instanceof ApiError && error.code === "FORBIDDEN") return { data: {}, errors: [{ message: "", extensions: error }], reads: null };
      throw error;
    }
  }

  /** Rows of which names alone were read, with the rest of those that may be read. @param {Row[]} names @returns {Promise<Row[]>} */
  async #known(names) {
    if (!names.length) return [];
    const { data } = await this.#try(this.documents.known, { paths: names.map((row) => row.path) });
    return names.map((row, place) => data.nodes?.[place] ?? { ...row, childCount: null, stub: true });
  }

  /**
   * The node at a path, null without one, with its children as a family. Throws ApiError.
   * @param {string} path @returns {Promise<Row | null>}
   */
  async #node(path) {
    const variables = this.#variables(new Family(path));
    let { data, errors } = /** @type {Answer<NodeQuery>} */ (await this.#try(this.documents.node, variables));
    const isStub = !data.node && isForbidden(errors);
    if (isStub) ({ data, errors } = await this.api.ask(this.documents.stub, variables));
    if (!data.node && errors.length) throw new ApiError(errors[0].message, errors[0].extensions?.code ?? "REJECTED");
    if (!data.node) return null;
    const { children, ...node } = data.node;
    if (children) this.#renew(node.path, isStub ? { ...children, nodes: await this.#known(children.nodes) } : children);
    return isStub ? { ...node, childCount: null, stub: true } : node;
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

  /** Begin to open the path that is shown first. @param {string} path */
  begin(path) {
    this.#begun = { path, node: this.open(path) };
    this.#begun.node.catch(() => {}); // whoever opens it sees the error
  }

  /**
   * The node at a path, null without one, and all that the tree shows above it, which is read at the same time.
   * Throws ApiError.
   * @param {string} path @returns {Promise<Row | null>}
   */
  async open(path) {
    const begun = this.#begun;
    this.#begun = null;
    if (begun?.path === path) return begun.node;
    const above = prefixes(parentOf(path)).filter(Boolean);
    ["", ...above].forEach((one) => this.first(one));
    const node = path ? await this.#node(path) : null;
    if (node) this.#reveal(node);
    return node;
  }

  /** Show a node in the tree: load and expand what is above it. @param {Row} node */
  async #reveal(node) {
    const above = prefixes(parentOf(node.path)).filter(Boolean);
    [...above, node.path].forEach((path) => this.expanded.add(path));
    await Promise.all(["", ...above].map((path) => this.first(path)));
    const shown = [...(node.ancestors ?? []).map((/** @type {any} */ one) => ({ ...one, childCount: null })), node];
    for (const row of shown) {
      const family = this.family(parentOf(row.path));
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

  /** Read again what is shown, since something was written; what was read before is shown until all is there. */
  async refresh() {
    const shown = [...this.families.values()].filter(({ path }) => !path || this.expanded.has(path));
    const fresh = await Promise.all(shown.map((old) => this.#again(old)));
    this.families = new Map(fresh.map((family) => [family.path, family]));
    this.changed();
  }

  /** A family, read again as far as it was, or to MAX_PAGES. @param {Family} old */
  async #again(old) {
    const family = new Family(old.path);
    const isShort = () => family.rows.length < Math.min(old.rows.length, MAX_PAGES * PAGE);
    do await this.load(family);
    while (isShort() && family.hasMore && !family.error);
    family.later = old.later.filter(({ path }) => family.hasMore && !family.paths.has(path));
    return family;
  }
}

/** @param {unknown} error @returns {string} */
export const sentence = (error) => (error instanceof ApiError ? error.message : `The page failed: ${error}`);

/** Whether a row can have children. @param {Row} row */
export const isParent = (row) => row.stub || row.childCount === null || row.childCount > 0;

/**
 * One line of the tree: a node, or the end of what is loaded of a family.
 * @typedef {{row: Row | null, family: Family, depth: number, position: number}} Line
 */

/** The lines of the tree from top to bottom. @param {Model} model @returns {Line[]} */
export function linesOf(model) {
  /** @type {Line[]} */
  const lines = [];
  const walk = (/** @type {string} */ path, /** @type {number} */ depth) => {
    const family = model.family(path);
    const add = (/** @type {Row} */ row, /** @type {number} */ place) => {
      lines.push({ row, family, depth, position: place + 1 });
      if (model.expanded.has(row.path) && isParent(row)) walk(row.path, depth + 1);
    };
    family.rows.forEach(add);
    if (family.hasMore || family.error) lines.push({ row: null, family, depth, position: family.rows.length + 1 });
    family.later.forEach((row, place) => add(row, family.rows.length + place));
  };
  walk("", 0);
  return lines;
}
