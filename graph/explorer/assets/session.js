// Session: the key of the caller, the hierarchies that it may read, and what was read of the one that is shown: families,
// each the children of a node page by page, and the node that is shown. Its first requests are sent while the modules of
// the page's parts still load, so it imports none of them, nor what takes time, such as the formats of words.js.
import { Api, Failure, sentence } from "./api.js";
import { conditionsOf, documents, HIERARCHIES, parentOf, PLAIN, placeOf, prefixes, responseName, treeOf } from "./hierarchy.js";
/** @import { Answer, Expected, GraphQLError } from "./api" */
/** @import { Hierarchy, View } from "./hierarchy" */
/** @import { AboveQuery, CountRootsQuery, NodeQuery, RootsQuery } from "./types" */

/** A node in a list. The other members are counts by level and attributes.
 * @typedef {{path: string, key: string, name: string, level: string, childCount: number | null} & Record<string, any>} Row */
/** @typedef {{totalCount?: number | null, nodes: Row[], pageInfo: {hasNextPage: boolean, endCursor?: string | null}}} List */
/** @typedef {NonNullable<NonNullable<CountRootsQuery["list"]>["facets"]>[number]} Facet */

const PAGE = 100;
const MAX_PAGES = 5; // of a family that is read again; the rest comes when it is scrolled into view

const isOfChildren = (/** @type {{path?: (string | number)[]}} */ { path }) => path?.[0] === "node" && path[1] === "children";

class Session {
  /** @type {Hierarchy[]} */
  hierarchies = [];
  /** A sentence where nothing can be shown. */
  error = "";
  /** Called when anything was read. */
  onChange = () => {};
  /** @type {Model | null} */
  #model = null;

  /** @param {string} url of the GraphQL endpoint */
  constructor(url) {
    this.api = new Api(url, () => this.onChange());
  }

  /** Read which hierarchies there are, and of one what the address of the page names. */
  async start() {
    this.error = "";
    this.onChange();
    this.api.begin();
    try {
      this.hierarchies = (await this.api.ask(HIERARCHIES)).data.hierarchies;
      if (!this.hierarchies.length) this.error = "Nothing here may be read with this key; use another one.";
      const { hierarchy, path } = placeOf(location.hash);
      const model = this.model(hierarchy);
      model?.begin(model.hierarchy.name === hierarchy ? path : "");
    } catch (failure) {
      this.hierarchies = [];
      this.error = sentence(failure);
    }
    this.onChange();
  }

  /** The model of the hierarchy of this name, else of the first; null while there is none. @param {string} name */
  model(name) {
    const hierarchy = this.hierarchies.find((one) => one.name === name) ?? this.hierarchies[0];
    if (!hierarchy) return null;
    if (this.#model?.hierarchy !== hierarchy) this.#model = new Model(this.api, hierarchy, () => this.onChange());
    return this.#model;
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
    /** @type {Set<string | number | undefined>} names of computed fields in answers. */
    this.computed = new Set(hierarchy.levels.flatMap((level) =>
      level.attributes.filter((one) => one.computed).map((one) => responseName(hierarchy, level, one))));
    /** @type {Map<string, Family>} */
    this.families = new Map();
    /** @type {Map<string, string>} ids of the nodes that were shown, by path. */
    this.ids = new Map();
    /** @type {Set<string>} paths of the nodes whose children the tree shows. */
    this.expanded = new Set();
  }

  /** The family of a path in the order of the hierarchy. @param {string} path */
  family(path) {
    const found = this.families.get(path) ?? new Family(path);
    this.families.set(path, found);
    return found;
  }

  /**
   * The answer to a document, with a Failure for each computed field that failed; other errors are as Api.ask has them.
   * @param {string} document @param {Record<string, unknown>} variables @param {Expected} [expected] @returns {Promise<Answer>}
   */
  async #ask(document, variables, expected = () => false) {
    const isComputed = (/** @type {GraphQLError} */ { path = [] }) => path.length > 1 && this.computed.has(path[path.length - 1]);
    const { data, errors } = await this.api.ask(document, variables, (error) => isComputed(error) || expected(error));
    for (const { message, path = [] } of errors.filter(isComputed)) {
      const node = path.slice(0, -1).reduce((within, part) => within?.[part], data);
      if (node) node[path[path.length - 1]] = new Failure(message);
    }
    return { data, errors: errors.filter((error) => !isComputed(error)) };
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
    const { roots, children, descendants } = this.documents;
    const document = !family.path ? roots : family.view.isDeep ? descendants : children;
    const { data } = await this.#ask(document, { ...this.#variables(family), ...conditionsOf(family.view) });
    return listIn(family, data);
  }

  /**
   * The values that the nodes of a family have in a column, whatever the column itself is filtered by: the most frequent
   * ones with their numbers. Null where the family is gone. Throws ApiError.
   * @param {Family} family @param {string} facet @param {number} first @returns {Promise<Facet | null>}
   */
  async facet({ path, view }, facet, first) {
    const { countRoots, countChildren, countDescendants } = this.documents;
    const document = !path ? countRoots : view.isDeep ? countDescendants : countChildren;
    const { where, level } = conditionsOf(view);
    const variables = { path: path || undefined, first, where, level: facet === "LEVEL" ? null : level, fields: [facet] };
    const { data } = await this.api.ask(document, variables);
    return listIn({ path }, data)?.facets[0] ?? null;
  }

  /** Load families above a path by one query. @param {string} path @param {Family[]} families */
  async #loadAbove(path, families) {
    this.changed();
    try {
      const { data } = await this.#ask(this.documents.above, { path, first: PAGE });
      const { list, node } = /** @type {AboveQuery} */ (data);
      const lists = new Map([["", list], ...(node?.ancestors ?? []).map((one) => /** @type {const} */ ([one.path, one.children]))]);
      for (const [one, page] of lists) {
        if (page && !this.family(one).rows.length) this.family(one).take(page);
      }
      // What is above the roots of the caller is nowhere in the tree.
      if (node) families.filter((family) => !lists.has(family.path)).forEach((family) => (family.hasMore = false));
    } catch (error) {
      families.forEach((family) => (family.error = sentence(error)));
    }
    families.forEach((family) => (family.loading = null));
    this.changed();
  }

  /** @param {Family} family */
  #variables(family) {
    const { text, order: chosen } = family.view;
    const order = chosen ?? (text ? { field: "RELEVANCE" } : null);
    const page = { first: PAGE, after: family.cursor, orderBy: order && [order] };
    return family.path ? { path: family.path, ...page } : page;
  }

  /**
   * The node at a path, null without one, with its children as a family, whose error does not hide the node. Throws
   * ApiError.
   * @param {string} path @returns {Promise<Row | null>}
   */
  async #node(path) {
    const variables = this.#variables(new Family(path));
    const { data, errors } = await this.#ask(this.documents.node, variables, isOfChildren);
    const found = /** @type {NodeQuery} */ (data).node;
    if (!found) return null;
    const { children, ...node } = found;
    this.ids.set(node.path, node.id);
    const old = this.family(node.path);
    if (children && !errors.length) this.#renew(node.path, children);
    else Object.assign(old, { error: errors[0]?.message ?? "", isStale: old.rows.length > 0 });
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
    const missing = ["", ...prefixes(parentOf(path)).filter(Boolean)].map((one) => this.family(one))
      .filter((family) => !family.rows.length && family.hasMore && !family.loading);
    const above = missing.length > 1 ? this.#loadAbove(path, missing) : Promise.all(missing.map((family) => this.load(family)));
    if (missing.length > 1) missing.forEach((family) => (family.loading = above.then(() => {})));
    const node = path ? await this.#node(path) : null;
    if (node) this.#reveal(node, above);
    return node;
  }

  /** Show a node in the tree: load and expand what is above it. @param {Row} node @param {Promise<unknown>} loading */
  async #reveal(node, loading) {
    const ancestors = /** @type {Row[]} */ (node.ancestors ?? []);
    const above = ancestors.map(({ path }) => path);
    [...above, node.path].forEach((path) => this.expanded.add(path));
    await loading;
    await Promise.all(["", ...above].map((path) => this.first(path)));
    const shown = [...ancestors.map((one) => ({ ...one, childCount: null })), node];
    for (const [place, row] of shown.entries()) {
      const family = this.family(place ? parentOf(row.path) : "");
      const isThere = family.paths.has(row.path) || family.later.some((one) => one.path === row.path);
      if (!isThere) family.later = [...family.later, row];
    }
    this.changed();
  }

  /** The root that a path is below for the caller, or that it is; its own tree while that is not loaded. @param {string} path */
  rootOf(path) {
    const { rows, later } = this.family("");
    return [...rows, ...later].find((row) => `${path}/`.startsWith(`${row.path}/`))?.path ?? treeOf(path);
  }

  /** A path, or the empty one of the roots where it is above one. @param {string} path */
  orRoots(path) {
    return this.family("").rows.some((row) => row.path.startsWith(`${path}/`)) ? "" : path;
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

  /** A family, read again as far as it was, or to MAX_PAGES; the old one if that fails. @param {Family} old */
  async #again(old) {
    const family = new Family(old.path);
    const isShort = () => family.rows.length < Math.min(old.rows.length, MAX_PAGES * PAGE);
    do await this.load(family);
    while (isShort() && family.hasMore && !family.error);
    if (family.error && old.rows.length) return Object.assign(old, { error: family.error, isStale: true });
    family.later = old.later.filter(({ path }) => family.hasMore && !family.paths.has(path));
    return family;
  }
}

/** The list of a family in an answer; null where its path is a former one, which leads to another node. @param {{path: string}} family @param {any} data */
const listIn = ({ path }, { list, node }) => (!path ? list : node?.path === path ? node.children : null);

/** The children of the node at `path`, or the roots where it is empty, in a view, as far as they are loaded. */
export class Family {
  /** @param {string} path @param {View} [view] @param {Row[]} [former] what is shown until the first page is there */
  constructor(path, view = PLAIN, former = []) {
    this.path = path;
    this.view = view;
    this.former = former;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Row[]} rows that were reached by their address, and come somewhere after those that are loaded. */
    this.later = [];
    /** @type {string | null} */
    this.cursor = null;
    this.hasMore = true;
    /** @type {number | null} of the whole list, null while that is not known. */
    this.total = null;
    /** @type {Promise<void> | null} the page that is under way. */
    this.loading = null;
    this.error = "";
    /** Whether it could not be read again after a change. */
    this.isStale = false;
    this.paths = new Set();
  }

  /** Its rows, or those that were there before while it loads. */
  get shown() {
    return this.rows.length || !this.hasMore || this.error ? this.rows : this.former;
  }

  /** Append a page. @param {List} list */
  take({ totalCount, nodes, pageInfo }) {
    const fresh = nodes.filter((row) => !this.paths.has(row.path));
    fresh.forEach((row) => this.paths.add(row.path));
    this.rows = [...this.rows, ...fresh];
    this.later = this.later.filter((row) => !this.paths.has(row.path));
    this.cursor = pageInfo.endCursor ?? null;
    this.hasMore = pageInfo.hasNextPage;
    this.total = totalCount ?? null;
    this.error = "";
  }
}

/** The session of this page. */
export const session = new Session("graphql");
session.start();
