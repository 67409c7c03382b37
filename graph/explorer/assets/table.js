// The children of a node as a table that sorts by orderBy and loads page by page while it is scrolled.
import { html, useEffect, useMemo } from "./vendor/preact.js";
import { addressOf, isColumn, responseName } from "./hierarchy.js";
import { childCounts, useWindow } from "./tree.js";
import { labelOf, levelWord, Value } from "./words.js";
/** @import { Family, Model, Order, Row } from "./session" */
/** @typedef {{title: string, order: string | null, type?: string, cell: (row: Row) => any}} Column */

const HEIGHT = 36;
const MAX_ATTRIBUTES = 6; // columns, those first that most of the loaded rows have

/** @param {{model: Model, family: Family, label: string, onOrder: (order: Order | null) => void}} props */
export function ChildrenTable({ model, family, label, onOrder }) {
  const { rows } = family;
  const shown = rows.length ? rows : model.family(family.path).rows; // while it is sorted, and if that fails
  const columns = useMemo(() => columnsOf(model, shown, !family.path), [model, shown]);
  const count = rows.length + (family.hasMore ? 1 : 0);
  const { ref, first, last } = useWindow(count, HEIGHT);
  useEffect(() => {
    // An effect may run after the page that it would ask for has come.
    if (family.hasMore && !family.error && last >= family.rows.length) model.load(family);
  });
  const press = (/** @type {Column} */ column) => {
    const { order } = family;
    if (order?.field !== column.order) onOrder({ field: /** @type {string} */ (column.order), direction: "ASC" });
    else onOrder(order.direction === "ASC" ? { ...order, direction: "DESC" } : null);
  };
  return html`<div class="table" ref=${ref} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${family.hasMore ? -1 : rows.length + 1}>
      <thead><tr>${columns.map((column) => html`<${Heading}
        key=${column.title} column=${column} order=${family.order} onPress=${column.order ? () => press(column) : null}
      />`)}</tr></thead>
      <tbody>
        <${Space} lines=${first} columns=${columns.length} />
        ${rows.slice(first, last).map((row, place) => html`<tr key=${row.path} aria-rowindex=${first + place + 2}>
          ${columns.map((column) => html`<td key=${column.title} class=${isNumber(column) ? "number" : ""}>${column.cell(row)}</td>`)}
        </tr>`)}
        <${Space} lines=${count - Math.min(last, rows.length)} columns=${columns.length} />
      </tbody>
    </table>
    ${family.error && html`<p class="error" role="alert">${family.error} <button onClick=${() => model.retry(family)}>Try again</button></p>`}
    ${family.loading && !rows.length && html`<p class="quiet">Loading…</p>`}
  </div>`;
}

/** @param {Model} model @param {Row[]} rows @param {boolean} areRoots @returns {Column[]} */
function columnsOf(model, rows, areRoots) {
  const { hierarchy } = model;
  const levels = new Set(rows.map((row) => row.level));
  /** @type {Map<string, Column & {count: number}>} */
  const found = new Map();
  for (const level of hierarchy.levels.filter(({ name }) => levels.has(name))) {
    for (const attribute of level.attributes.filter(isColumn)) {
      const field = responseName(hierarchy, level, attribute);
      const count = rows.filter((row) => row[field] !== null && row[field] !== undefined).length;
      const cell = (/** @type {Row} */ row) => html`<${Value} value=${row[field]} type=${attribute.type} />`;
      if (count) found.set(field, { title: labelOf(attribute), order: attribute.orderField ?? null, type: attribute.type, cell, count });
    }
  }
  const common = [...found.values()].sort((one, other) => other.count - one.count).slice(0, MAX_ATTRIBUTES);
  const attributes = [...found.values()].filter((column) => common.includes(column));
  /** @type {Column} */
  const level = { title: "Level", order: "LEVEL", cell: (row) => levelWord(row.level) };
  /** @type {Column} */
  const key = { title: "Key", order: "KEY", cell: (row) => html`<code>${row.key}</code>` }; // it is the order of the list
  /** @type {Column} */
  const path = { title: "Path", order: "PATH", cell: (row) => html`<code>${row.path}</code>` };
  const isDeep = areRoots && rows.some((row) => row.path.includes("/")); // roots of a caller who may read a part
  const hasKeys = rows.some((row) => row.key !== row.name);
  const hasChildren = rows.some((row) => row.childCount);
  return [
    { title: "Name", order: "NAME", cell: (row) => html`<a href=${addressOf(hierarchy.name, row.path)}>${row.name}</a>` },
    ...(isDeep ? [path] : hasKeys ? [key] : []),
    ...(levels.size > 1 ? [level] : []),
    ...attributes,
    ...(hasChildren ? [{ title: "Children", order: "CHILD_COUNT", cell: (/** @type {Row} */ row) => childCounts(hierarchy, row) }] : []),
  ];
}

/** @param {Column} column */
const isNumber = (column) => ["Int", "Long", "Float", "Decimal"].includes(column.type ?? "");

/** @param {{column: Column, order: Order | null, onPress: (() => void) | null}} props */
function Heading({ column, order, onPress }) {
  const direction = order && order.field === column.order ? order.direction : null;
  const sorted = direction && { ASC: "ascending", DESC: "descending" }[direction];
  const mark = direction ? { ASC: "↑", DESC: "↓" }[direction] : "";
  return html`<th scope="col" class=${isNumber(column) ? "number" : ""} aria-sort=${sorted ?? undefined}>
    ${onPress ? html`<button class="heading" onClick=${onPress}>${column.title} <span aria-hidden="true">${mark}</span></button>` : column.title}
  </th>`;
}

/** Room for lines that are not in the document. @param {{lines: number, columns: number}} props */
function Space({ lines, columns }) {
  return lines > 0 ? html`<tr aria-hidden="true"><td colspan=${columns} class="space" style=${{ height: lines * HEIGHT }}></td></tr>` : null;
}
