// A hierarchy: its levels and attributes, the paths and addresses of its nodes, and the documents that read it, made of
// its names; only those that need none are the same for all.

/** @typedef {import("./types").HierarchiesQuery["hierarchies"][number]} Hierarchy */
/** @typedef {Hierarchy["levels"][number]} Level */
/** @typedef {Level["attributes"][number]} Attribute */
/** What a column is filtered by: some of its values, a range, or that there is no value. The column LEVEL has no attribute.
 * @typedef {{facet: string, name: string, label: string, type: string, values: string[], from: string, to: string,
 *   isMissing: boolean}} Filter */
/** A list as somebody asked for it: in an order, filtered, with a text to search for, and perhaps of all descendants.
 * @typedef {{order: Order | null, filters: Filter[], text: string, isDeep: boolean}} View */
/** @typedef {{field: string, direction: "ASC" | "DESC"}} Order */

const MAX_ALIASES = 30; // of a document, as the server limits them
const MAX_COUNTED = 12; // levels with an alias for their count, since aliases are limited

/** The level of this name. @param {Hierarchy} hierarchy @param {string} name @returns {Level} */
export function levelOf(hierarchy, name) {
  const level = hierarchy.levels.find((one) => one.name === name);
  if (!level) throw new Error(`The hierarchy ${hierarchy.name} has no level ${name}.`);
  return level;
}

/** The attributes that are written, not computed. @param {Level} level */
export const storedAttributes = (level) => level.attributes.filter((one) => !one.computed);

/**
 * Whether an attribute can have a column: lists are counted by it, or it is a computed value that fits into a line. One that
 * is deprecated repeats another.
 * @param {Attribute} attribute
 */
export const isColumn = ({ facetField, computed, deprecated, selection, type }) =>
  facetField !== null || (computed && !deprecated && (!selection || type === "Money"));

/** The unique attributes, of each level that has them. @param {Hierarchy} hierarchy */
export const uniqueOf = (hierarchy) =>
  hierarchy.levels.flatMap((level) => level.attributes.filter((one) => one.unique).map((attribute) => ({ level, attribute })));

/** The type of one value of an attribute: that of "[String!]" is "String". @param {string} type */
export const elementType = (type) => type.replace(/[[\]!]/g, "");

/** The levels that a child of this node may have, or a root without a node. @param {Hierarchy} hierarchy @param {{level: string} | null} node */
export const levelsBelow = (hierarchy, node) =>
  hierarchy.levels.filter((one) => (node ? one.under.some((level) => level === node.level) : one.mayBeRoot));

/** Levels whose nodes can be below others. @param {Hierarchy} hierarchy */
const lower = (hierarchy) => hierarchy.levels.filter((level) => level.under.length);

/** Levels with coordinates that one list has of all trees. @param {Hierarchy} hierarchy */
const placesOf = ({ levels, latitudeField }) =>
  levels.filter((level) => !level.mayBeRoot && level.attributes.some((one) => one.name === latitudeField));

/** Levels that are counted below a node; none where there are too many. @param {Hierarchy} hierarchy */
export function countedLevels(hierarchy) {
  const levels = lower(hierarchy);
  return levels.length > 1 && levels.length <= MAX_COUNTED ? levels : [];
}

/**
 * The field of an attribute in an answer. Levels may have attributes of one name and of different types, which one
 * document can only select under different names.
 * @param {Hierarchy} hierarchy @param {Level} level @param {Attribute} attribute
 */
export function responseName(hierarchy, level, attribute) {
  const types = new Set(hierarchy.levels.flatMap((one) => one.attributes)
    .filter((one) => one.name === attribute.name).map((one) => one.type));
  return types.size > 1 ? `${attribute.name}_${level.name}` : attribute.name;
}

// -- paths and addresses ----------------------------------------------------------------------------------------------

/** The address of a node on this page; without a path, of its hierarchy. @param {string} hierarchy @param {string} [path] */
export function addressOf(hierarchy, path = "") {
  const parts = [hierarchy.toLowerCase(), ...(path ? path.split("/") : [])];
  return `#${parts.map(encodeURIComponent).join("/")}`;
}

/** Hierarchy and path of an address. @param {string} hash @returns {{hierarchy: string, path: string}} */
export function placeOf(hash) {
  const [hierarchy = "", ...path] = hash.slice(1).split("/").map(decoded);
  return { hierarchy: hierarchy.toUpperCase(), path: path.filter(Boolean).join("/") };
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a "%" that somebody typed
  }
}

/** The path above; empty for a root. @param {string} path */
export const parentOf = (path) => path.split("/").slice(0, -1).join("/");

/** The path of a child. @param {string | undefined} parent none for a root @param {string} key */
export const childPath = (parent, key) => [...(parent ? [parent] : []), key.replaceAll("%", "%25").replaceAll("/", "%2F")].join("/");

/** The key of the node at a path. @param {string} path */
export const keyOf = (path) => path.slice(path.lastIndexOf("/") + 1).replaceAll(/%2F/gi, "/").replaceAll("%25", "%");

/** The path of the root of its tree; empty without a path. @param {string} path */
export const treeOf = (path) => path.split("/")[0];

/** The paths from the root down to a path. @param {string} path */
export const prefixes = (path) => path.split("/").map((_, place, keys) => keys.slice(0, place + 1).join("/"));

// -- views of lists ---------------------------------------------------------------------------------------------------

/** A list as the server has it. @type {View} */
export const PLAIN = { order: null, filters: [], text: "", isDeep: false };

/** Whether a view leaves out nodes. @param {View} view */
export const isFiltered = ({ filters, text }) => filters.length > 0 || text !== "";

/**
 * The arguments `where` and `level` of a view. Values of a column are joined by "or", those of a column of lists by "and":
 * each further one leaves fewer nodes.
 * @param {View} view @returns {{where: Record<string, any> | null, level: string[] | null}}
 */
export function conditionsOf({ filters, text }) {
  /** @type {Record<string, any>} */
  const where = text ? { search: { text } } : {};
  let level = null;
  for (const { facet, name, type, values, from, to, isMissing } of filters) {
    const given = values.map((one) => operand(type, one));
    if (facet === "LEVEL") level = values;
    else if (isMissing) where[name] = { isNull: true };
    else if (type.startsWith("[")) where.and = [...(where.and ?? []), ...given.map((one) => ({ [name]: { contains: one } }))];
    else if (from || to) where[name] = { ...(from && { gte: operand(type, from) }), ...(to && { lte: operand(type, to) }) };
    else where[name] = type === "Boolean" ? { eq: given[0] } : { in: given };
  }
  return { where: Object.keys(where).length ? where : null, level };
}

/** A text as the value of a condition; one that is no number is left as it is, for the server to say so. @param {string} type @param {string} text */
export function operand(type, text) {
  const scalar = elementType(type);
  if (scalar === "Boolean") return text === "true";
  const isNumber = ["Int", "Float"].includes(scalar) && Number.isFinite(Number(text));
  return isNumber ? Number(text) : text;
}

// -- documents --------------------------------------------------------------------------------------------------------

export const HIERARCHIES = `query Hierarchies {
  hierarchies {
    name title description field listField searchField searchNeedsUnder latitudeField longitudeField mayWrite
    levels {
      name title description under mayBeRoot inputField
      attributes { name type selection values orderField facetField description required minimum maximum pattern computed
        deprecated unique }
    }
  }
}`;

/** A node that is deleted.
 * @typedef {{nodeId: string, path: string, level: string | null, deletedAt: string, deletedBy: string | null,
 *   descendantCount: number}} Deleted */

/** The deleted nodes of so many ids, by alias: `gone0` is that of the variable `id0`. @param {number} count */
export function deletedNodes(count) {
  const places = Array.from({ length: count }, (_, place) => place);
  const fields = places.map((one) => `\n  gone${one}: deletedNode(id: $id${one}) { nodeId path level deletedAt deletedBy descendantCount }`);
  return `query deleted(${places.map((one) => `$id${one}: ID!`).join(", ")}) {${fields.join("")}\n}`;
}

/** @param {Hierarchy} hierarchy */
export function documents(hierarchy) {
  const { title, field, listField, searchField } = hierarchy;
  const places = placesOf(hierarchy).map((level) => level.name).join(", ");
  const order = "first: $first, after: $after, orderBy: $orderBy";
  const children = (/** @type {string} */ list) => `${list}) {
      totalCount
      nodes {
        ${row(hierarchy, lower(hierarchy), "        ")}
      }
      ${AFTER}
    }`;
  const facets = "facets(fields: $fields, first: $first) { values { value count } distinctCount missingCount minimum maximum }";
  const conditions = `$where: ${title}Condition, $level: [${title}Level!]`;
  const counted = `$first: Int!, ${conditions}, $fields: [${title}FacetField!]!`;
  const below = (/** @type {string} */ name, /** @type {string} */ variables, /** @type {string} */ list) => `query ${name}($path: Path!, ${variables}) {
  node: ${field}(path: $path) {
    path
    ${list}
  }
}`;
  const found = `nodes {
      path name level
      ancestors { path name }
    }`;
  const page = `$first: Int!, $after: String, $orderBy: [${title}OrderBy!]`;
  // Aliases are limited, so the roots and the rows of all ancestors are apart from the node.
  const above = `query Above($path: Path!, $first: Int!) {
  list: ${listField}(first: $first) {
    totalCount
    nodes { ...AboveRow }
    ${AFTER}
  }
  node: ${field}(path: $path) {
    ancestors {
      path
      children(first: $first) { totalCount nodes { ...AboveRow } ${AFTER} }
    }
  }
}

fragment AboveRow on ${title} {
  ${row(hierarchy, hierarchy.levels, "        ")}
}`;
  return {
    roots: `query Roots(${page}, ${conditions}) {
  list: ${listField}(${order}, ${FILTERED}) {
    totalCount
    nodes {
      ${row(hierarchy, hierarchy.levels, "      ")}
    }
    ${AFTER}
  }
}`,
    node: `query Node($path: Path!, ${page}) {
  node: ${field}(path: $path) {
    id path key name level depth childCount descendantCount revision updatedAt changedBy
    names { language text }
    ancestors { path name level }${counts(hierarchy, "descendantCount", "below_", "    ")}${attributes(hierarchy, hierarchy.levels, () => true, "    ")}
    ${children(`children(${order}`)}
  }
}`,
    children: below("Children", `${page}, ${conditions}`, children(`children(${order}, ${FILTERED}`)),
    descendants: below("Descendants", `${page}, ${conditions}`, children(`children: descendants(${order}, ${FILTERED}`)),
    countRoots: `query CountRoots(${counted}) {
  list: ${listField}(first: 0, ${FILTERED}) { ${facets} }
}`,
    countChildren: below("CountChildren", counted, `children(first: 0, ${FILTERED}) { ${facets} }`),
    countDescendants: below("CountDescendants", counted, `children: descendants(first: 0, ${FILTERED}) { ${facets} }`),
    above,
    search: searchField && `query Search($text: String!, $under: Path, $first: Int!) {
  found: ${searchField}(text: $text, under: $under, first: $first) {
    complete
    ${found}
  }
}`,
    near: places && `query Near($near: NearCondition!, $first: Int!) {
  found: ${listField}(level: [${places}], where: {near: $near}, orderBy: {field: DISTANCE}, first: $first) {
    edges { kilometers node { path name level } }
  }
}`,
  };
}

/**
 * The look-ups of a text by each unique attribute that can have it as its value, on each level, whose field finds no others.
 * `by` has their attributes by alias. @param {Hierarchy} hierarchy @param {string} text
 */
export function lookupsOf(hierarchy, text) {
  const asked = uniqueOf(hierarchy).filter(({ attribute }) => codeOf(attribute, text) !== null).slice(0, MAX_ALIASES);
  const types = [...new Set(asked.map(({ attribute }) => attribute.type))];
  const fields = asked.map(({ level: { title }, attribute: { name, type } }, place) =>
    `\n  by${place}: ${title[0].toLowerCase()}${title.slice(1)}(${name}: $${type}) { path name level ancestors { path name } }`);
  return {
    document: `query Lookup(${types.map((type) => `$${type}: ${type}`).join(", ")}) {${fields.join("")}\n}`,
    variables: Object.fromEntries(asked.map(({ attribute }) => [attribute.type, codeOf(attribute, text)])),
    by: new Map(asked.map(({ attribute }, place) => [`by${place}`, attribute])),
  };
}

/** A text as a value of a unique attribute; null where it is none of its type. @param {Attribute} attribute @param {string} text */
function codeOf({ type, values }, text) {
  if (values) return values.includes(text) ? text : null;
  if (type === "Date") return new Date(text).toJSON()?.startsWith(`${text}T`) ? text : null;
  if (type === "String") return text;
  if (!/^-?\d+$/.test(text) || BigInt.asIntN(type === "Int" ? 32 : 64, BigInt(text)) !== BigInt(text)) return null;
  return operand(type, text);
}

/** @param {Hierarchy} hierarchy @param {Level[]} levels @param {(one: Attribute) => unknown} chosen @param {string} indent */
function attributes(hierarchy, levels, chosen, indent) {
  const parts = levels.map((level) => {
    const fields = level.attributes.filter(chosen).map((one) => {
      const name = responseName(hierarchy, level, one);
      return [name === one.name ? name : `${name}: ${one.name}`, one.selection].filter(Boolean).join(" ");
    });
    return fields.length ? `\n${indent}... on ${level.title} { ${fields.join(" ")} }` : "";
  });
  return parts.join("");
}

/** @param {Hierarchy} hierarchy @param {string} field @param {string} prefix @param {string} indent */
function counts(hierarchy, field, prefix, indent) {
  const parts = countedLevels(hierarchy).map(({ name }) => `${prefix}${name}: ${field}(level: ${name})`);
  return parts.map((part) => `\n${indent}${part}`).join("");
}

/** A row of the tree and of tables. @param {Hierarchy} hierarchy @param {Level[]} levels @param {string} indent */
function row(hierarchy, levels, indent) {
  return `path key name level childCount${counts(hierarchy, "childCount", "children_", indent)}` +
    attributes(hierarchy, levels, isColumn, indent);
}

const FILTERED = "where: $where, level: $level";
const AFTER = "pageInfo { hasNextPage endCursor }";
