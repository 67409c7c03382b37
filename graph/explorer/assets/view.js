// View of a list: its order, levels, conditions and columns, as the address of the page has them.
import { ApiError } from "./api.js";
import { responseName } from "./documents.js";
import { toInput } from "./values.js";
import { fieldWords } from "./words.js";
/** @import { Hierarchy } from "./api" */
/** @import { Order } from "./model" */
/** @typedef {{field: string, operator: string, value: string}} Condition */
/** `isBelow` lists all descendants, and `columns` is null for the usual ones.
 * @typedef {{order: Order | null, levels: string[], isBelow: boolean, conditions: Condition[], columns: string[] | null}} View */
/** @typedef {{name: string, type: string, values?: string[] | null}} Comparable - a value that lists are filtered by */

/** The operators of conditions in words. @type {Record<string, string>} */
export const OPERATORS = {
  contains: "contains", startsWith: "begins with", eq: "is", ne: "is not", gte: "is at least", lte: "is at most",
  gt: "is more than", lt: "is less than", isNull: "is empty",
};
const OF_TEXT = ["contains", "startsWith", "eq", "ne", "isNull"];
const OF_ORDERED = ["gte", "lte", "gt", "lt", "eq", "ne", "isNull"];
/** @type {Record<string, string[]>} */
const OF_TYPE = { String: OF_TEXT, Url: OF_TEXT, Key: ["startsWith", "eq", "gte", "lt"], Boolean: ["eq", "isNull"] };

/** The view that the query of an address describes. @param {string} query @returns {View} */
export function viewOf(query) {
  const given = new URLSearchParams(query);
  const sort = given.get("sort") ?? "";
  const conditions = [...given].filter(([name]) => name.includes(".")).map(([name, value]) => {
    const [field, operator] = name.split(".");
    return { field, operator, value };
  });
  return {
    order: sort ? { field: sort.replace(/^-/, ""), direction: sort.startsWith("-") ? "DESC" : "ASC" } : null,
    levels: given.getAll("level"), isBelow: given.has("below"), conditions, columns: given.get("columns")?.split(",") ?? null,
  };
}

/** The query of an address for a view. @param {View} view */
export function queryOf({ order, levels, isBelow, conditions, columns }) {
  const given = new URLSearchParams(levels.map((level) => ["level", level]));
  if (isBelow) given.append("below", "1");
  conditions.forEach(({ field, operator, value }) => given.append(`${field}.${operator}`, value));
  if (order) given.append("sort", `${order.direction === "DESC" ? "-" : ""}${order.field}`);
  if (columns) given.append("columns", columns.join(","));
  return given.toString();
}

/** What names the nodes of a view and their order. @param {View} view */
export const listKey = (view) => queryOf({ ...view, columns: null });

/** Whether a view leaves nothing out. @param {View} view */
export const isWhole = ({ levels, isBelow, conditions }) => !levels.length && !isBelow && !conditions.length;

/** Whether a view lists the children in the order of the hierarchy. @param {View} view */
export const isPlain = (view) => isWhole(view) && !view.order;

/** The values that lists of a hierarchy are filtered by. @param {Hierarchy} hierarchy @returns {Comparable[]} */
export function comparables(hierarchy) {
  const attributes = hierarchy.levels.flatMap((level) => level.attributes
    .filter((one) => (one.orderField || (one.type.startsWith("[") && !one.selection)) && responseName(hierarchy, level, one) === one.name));
  const named = new Map(attributes.map((one) => [one.name, one]));
  return [
    { name: "name", type: "String" }, { name: "key", type: "Key" }, ...named.values(),
    { name: "childCount", type: "Int" }, { name: "updatedAt", type: "DateTime" },
  ];
}

/** The operators of a value. @param {Comparable} value */
export function operatorsOf({ type, values }) {
  if (type.startsWith("[")) return ["contains"];
  return values ? ["eq", "ne", "isNull"] : OF_TYPE[type] ?? OF_ORDERED;
}

/** The variables of a view. Throws ApiError for a text that is no value of its type. @param {Hierarchy} hierarchy @param {View} view */
export function variablesOf(hierarchy, { order, levels, conditions }) {
  const known = comparables(hierarchy);
  const where = conditions.map(({ field, operator, value }) => {
    const { type = "", values = null } = known.find(({ name }) => name === field) ?? {};
    try {
      const attribute = /** @type {any} */ ({ type: type.replace(/[[\]!]/g, ""), values });
      return { [field]: { [operator]: operator === "isNull" ? value === "true" : toInput(attribute, value, "") } };
    } catch (error) {
      throw new ApiError(`${fieldWords(field)}: ${/** @type {Error} */ (error).message}`, "BAD_USER_INPUT");
    }
  });
  return { orderBy: order && [order], level: levels.length ? levels : null, where: where.length ? { and: where } : null };
}
