// Export of a list as a file: CSV or JSON lines, with the columns that are shown.
import { ApiError } from "./api.js";
import { Family } from "./model.js";
/** @import { Model, Row } from "./model" */
/** @import { Column } from "./table" */

const PAGE = 1000;
const MAX_ROWS = 100_000; // that a page keeps in memory
const SPECIAL = /[",\r\n]/;

/** A value as a cell of CSV, as RFC 4180 has it. @param {any} value */
function cellOf(value) {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The text of a file. @param {Row[]} rows @param {Column[]} columns @param {"csv" | "jsonl"} format */
export function textOf(rows, columns, format) {
  if (format === "csv") {
    return [columns.map(({ id }) => id), ...rows.map((row) => columns.map(({ field }) => row[field]))]
      .map((cells) => `${cells.map(cellOf).join(",")}\r\n`).join("");
  }
  return rows.map((row) => `${JSON.stringify(Object.fromEntries(columns.map(({ id, field }) => [id, row[field] ?? null])))}\n`).join("");
}

/**
 * Read a list to its end, and have the browser keep it as a file. Throws ApiError. Resolves to the number of nodes.
 * @param {Model} model @param {Family} family @param {Column[]} columns @param {"csv" | "jsonl"} format
 * @param {(count: number) => void} report called after each page
 */
export async function exported(model, family, columns, format, report) {
  const all = new Family(family.path, family.view, PAGE);
  while (all.hasMore) {
    await model.load(all);
    if (all.error) throw new ApiError(all.error, "REJECTED");
    if (all.rows.length > MAX_ROWS) throw new ApiError("More than 100,000 nodes are for the command clade export.", "REJECTED");
    report(all.rows.length);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([textOf(all.rows, columns, format)], { type: format === "csv" ? "text/csv" : "application/jsonl" }));
  link.download = `${family.path.split("/").at(-1) || model.hierarchy.listField}.${format}`;
  link.click();
  URL.revokeObjectURL(link.href);
  return all.rows.length;
}
