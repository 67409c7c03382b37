// Prints every condition that the explorer offers: node print_conditions.mjs FILE, with the hierarchies as JSON.
import { readFileSync } from "node:fs";
import { comparables, operatorsOf, variablesOf } from "../../../graph/explorer/assets/view.js";

const TEXTS = { Boolean: "true", Date: "2026-01-02", DateTime: "2026-01-02T03:04:05Z", Decimal: "1.5", Float: "1.5", Int: "1", Long: "9007199254740993" };
const textOf = ({ type, values }) => values?.[0] ?? TEXTS[type.replace(/[[\]!]/g, "")] ?? "x";

const all = JSON.parse(readFileSync(process.argv[2], "utf8")).map((hierarchy) => [hierarchy.title, comparables(hierarchy).flatMap((one) =>
  operatorsOf(one).map((operator) => {
    const value = operator === "isNull" ? "false" : textOf(one);
    const conditions = [{ field: one.name, operator, value }];
    return variablesOf(hierarchy, { order: null, levels: [], isBelow: false, conditions, columns: null }).where;
  }))]);
console.log(JSON.stringify(Object.fromEntries(all)));
