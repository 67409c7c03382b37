// Documents of histories and mutations, made for each hierarchy from its entry in `hierarchies`.
import { storedAttributes } from "./documents.js";
/** @import { Hierarchy } from "./api" */
/** @import { Level } from "./documents" */
/** @typedef {{language: string, text: string}} Text */
/** A node with its attributes.
 * @typedef {{id: string, path: string, key: string, name: string, names: Text[], level: string, revision: number,
 *   changedBy: string | null, descendantCount: number, [attribute: string]: any}} Content */
/** @typedef {{id: string, from: string, to: string | null, state: string, reason: string | null, nodes: number,
 *   written: number}} Move */
/** @typedef {{nodes: number, transactions: number, writeUnits: number, collisions: string[]}} Plan */
/** @typedef {keyof typeof ARGUMENTS} Verb */

const MOVE = "id from to state reason nodes written";
const OPTIONS = { dryRun: "Boolean!", idempotencyKey: "String" };
const CHANGE = { path: "Path!", expectedRevision: "Int", ...OPTIONS };

const ARGUMENTS = {
  create: (/** @type {string} */ title) => ({
    parent: "Path", key: "String!", name: "String!", names: "[LocalizedNameInput!]", id: "ID",
    attributes: `${title}Attributes!`, ...OPTIONS,
  }),
  update: (/** @type {string} */ title) => ({ name: "String", names: "[LocalizedNameInput!]", attributes: `${title}Attributes`, ...CHANGE }),
  rename: () => ({ key: "String!", ...CHANGE }),
  move: () => ({ to: "Path", ...CHANGE }),
  reorder: () => ({ first: "Boolean", last: "Boolean", before: "Path", after: "Path", ...CHANGE }),
  delete: () => ({ policy: "DeletePolicy!", ...CHANGE }),
};

export const VERBS = /** @type {Verb[]} */ (Object.keys(ARGUMENTS));

/** The fields of all stored attributes of a type of this level. @param {Level} level @param {string} type */
function attributesOn(level, type) {
  const fields = storedAttributes(level).map((one) => `${one.name} ${one.selection ?? ""}`);
  return fields.length ? `... on ${type} { ${fields.join(" ")} }` : "";
}

/** A mutation, with the variables that it takes. @param {Hierarchy} hierarchy @param {Verb} verb */
export function mutation(hierarchy, verb) {
  const given = Object.entries(ARGUMENTS[verb](hierarchy.title));
  return `mutation ${verb}(${given.map(([name, type]) => `$${name}: ${type}`).join(", ")}) {
  result: ${verb}${hierarchy.title}(${given.map(([name]) => `${name}: $${name}`).join(", ")}) {
    node { path } move { ${MOVE} } plan { nodes transactions writeUnits collisions }
  }
}`;
}

/** The content of one node, by its path or its id. @param {Hierarchy} hierarchy @param {Level} level */
export const content = (hierarchy, level) => `query content($path: Path, $id: ID) {
  node: ${hierarchy.field}(path: $path, id: $id) {
    id path key name names { language text } level revision changedBy descendantCount
    ${attributesOn(level, level.title)}
  }
}`;

/** Revisions of a node, newest first. @param {Hierarchy} hierarchy @param {Level} level */
export const history = (hierarchy, level) => `query history($path: Path!, $first: Int!, $after: String) {
  node: ${hierarchy.field}(path: $path) {
    id
    history(first: $first, after: $after) {
      totalCount pageInfo { hasNextPage endCursor }
      nodes {
        revision changedAt changedBy name names { language text } level
        ${attributesOn(level, `${level.title}Revision`)}
      }
    }
  }
}`;

/** The children of a node that are of one level. @param {Hierarchy} hierarchy */
export const childrenOfLevel = (hierarchy) => `query childrenOfLevel($path: Path!, $level: [${hierarchy.title}Level!]!, $first: Int!) {
  node: ${hierarchy.field}(path: $path) { list: children(level: $level, first: $first) { nodes { path name } } }
}`;

/** The roots that are of one level. @param {Hierarchy} hierarchy */
export const rootsOfLevel = (hierarchy) => `query rootsOfLevel($level: [${hierarchy.title}Level!]!, $first: Int!) {
  list: ${hierarchy.listField}(level: $level, first: $first) { nodes { path name } }
}`;

/** Children whose keys begin with a text. @param {Hierarchy} hierarchy */
export const childrenWith = (hierarchy) => `query childrenWith($path: Path!, $start: String!, $first: Int!) {
  node: ${hierarchy.field}(path: $path) {
    children(first: $first, where: { key: { startsWith: $start } }, orderBy: { field: KEY }) { nodes { path name } }
  }
}`;

/** The changes of a tree, oldest first. */
export const CHANGES = `query changes($hierarchy: HierarchyName!, $tree: Path!, $after: String) {
  changes(hierarchy: $hierarchy, tree: $tree, after: $after) {
    changes { event nodeId from to at } cursor hasMore
  }
}`;

/** The progress of a large move. */
export const PROGRESS = `query progress($id: ID!) { move(id: $id) { ${MOVE} } }`;
