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
/** @typedef {{nodes: number, transactions: number, writeUnits: number}} Plan */
/** @typedef {{code: string, message: string, field: string[] | null, edit?: number | null}} UserError */
/** @typedef {keyof typeof MUTATIONS | "set"} Verb */

const MOVE = "id from to state reason nodes written";

/** The mutation of each dialog, by the beginning of its name. */
const MUTATIONS = { create: "create", update: "update", rename: "move", move: "move", delete: "delete" };

export const VERBS = /** @type {(keyof typeof MUTATIONS)[]} */ (Object.keys(MUTATIONS));

/** The fields of all stored attributes of a type of this level. @param {Level} level @param {string} type */
function attributesOn(level, type) {
  const fields = storedAttributes(level).map((one) => `${one.name} ${one.selection ?? ""}`);
  return fields.length ? `... on ${type} { ${fields.join(" ")} }` : "";
}

/** The mutation of a dialog. @param {Hierarchy} hierarchy @param {keyof typeof MUTATIONS} verb */
export function mutation(hierarchy, verb) {
  const name = MUTATIONS[verb];
  const type = `${name[0].toUpperCase()}${name.slice(1)}${hierarchy.title}Input`;
  return `mutation ${verb}($input: ${type}!, $dryRun: Boolean!, $idempotencyKey: String) {
  result: ${name}${hierarchy.title}(input: $input, dryRun: $dryRun, idempotencyKey: $idempotencyKey) {
    node { path }${["move", "delete"].includes(name) ? ` move { ${MOVE} }` : ""} plan { nodes transactions writeUnits }
    userErrors { code message field }
  }
}`;
}

/** The mutation of several edits in one transaction. @param {Hierarchy} hierarchy */
export const severalEdits = ({ title, listField }) => `mutation several($edits: [${title}Edit!]!, $dryRun: Boolean!, $idempotencyKey: String) {
  result: edit${listField[0].toUpperCase()}${listField.slice(1)}(edits: $edits, dryRun: $dryRun, idempotencyKey: $idempotencyKey) {
    plan { nodes transactions writeUnits } userErrors { code message field edit }
  }
}`;

/** The content of one node, by its path or its id. @param {Hierarchy} hierarchy @param {Level} level */
export const content = (hierarchy, level) => `query content($path: Path, $id: ID) {
  node: ${hierarchy.field}(path: $path, id: $id) {
    id path key name names { language text } level revision changedBy descendantCount
    ${attributesOn(level, level.title)}
  }
}`;

/** The last content of a deleted node. @param {Level} level */
export const lastContent = (level) => `query lastContent($id: ID!) {
  deletedNode(id: $id) { lastRevision { name names { language text } ${attributesOn(level, `${level.title}Revision`)} } }
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

/** The changes of a tree, oldest first. */
export const CHANGES = `query changes($hierarchy: HierarchyName!, $tree: Path!, $after: String) {
  changes(hierarchy: $hierarchy, tree: $tree, after: $after) {
    changes { event nodeId from to at } cursor hasMore
  }
}`;

/** The progress of a large move. */
export const PROGRESS = `query progress($id: ID!) { move(id: $id) { ${MOVE} } }`;
