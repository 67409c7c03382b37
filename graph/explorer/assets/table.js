// The children of a node, or all nodes below it, as a table that the server sorts and filters; pages are loaded while it is
// scrolled.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { FilterMenu, ListBar } from "./filters.js";
import { addressOf, isColumn, isFiltered, responseName } from "./hierarchy.js";
import { childCounts, useWindow } from "./tree.js";
import { labelOf, levelWord, Value } from "./words.js";
/** @import { View } from "./hierarchy" */
/** @import { Family, Model, Row } from "./session" */
/** @typedef {{title: string, order: string | null, facet: string | null, name: string, type: string, cell: (row: Row) => any}} Column
 *   `name` is that of its condition */
/** @typedef {{facet: string | null, button: HTMLElement, style: {[name: string]: string}}} Menu */

const HEIGHT = 36;
const MAX_ATTRIBUTES = 6; // columns, those first that most of the loaded rows have

/** @param {{model: Model, family: Family, node: Row | null, label: string, onView: (view: View) => void}} props */
export function ChildrenTable({ model, family, node, label, onView }) {
  const { view } = family;
  const rows = family.shown;
  const basis = useRef(/** @type {Row[]} */ ([])); // what the list has without its filter, so that columns stay where they are
  if (rows.length && !isFiltered(view)) basis.current = rows;
  const columns = useMemo(() => columnsOf(model, [...new Set([...basis.current, ...rows])], view, !family.path), [model, rows, view]);
  const count = rows.length + (family.hasMore ? 1 : 0);
  const { ref, first, last } = useWindow(count, HEIGHT);
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const [menu, setMenu] = useState(/** @type {Menu | null} */ (null));
  useEffect(() => {
    // An effect may run after the page that it would ask for has come.
    if (family.hasMore && !family.error && last >= family.rows.length) model.load(family);
  });
  const sort = (/** @type {Column} */ column) => {
    const { order } = view;
    /** @type {View["order"]} */
    let next = { field: column.order ?? "", direction: "ASC" };
    if (order?.field === column.order) next = order.direction === "ASC" ? { ...order, direction: "DESC" } : null;
    onView({ ...view, order: next });
  };
  const toggle = (/** @type {Column} */ { facet }, /** @type {HTMLElement} */ button) => {
    const [from, within] = [button, /** @type {HTMLElement} */ (list.current)].map((one) => one.getBoundingClientRect());
    const left = `max(0px, min(${from.left - within.left}px, 100% - 19rem))`;
    setMenu(menu?.facet === facet ? null : { facet, button, style: { left, top: `${from.bottom - within.top + 6}px` } });
  };
  const open = columns.find(({ facet }) => facet !== null && facet === menu?.facet);
  return html`<${ListBar} model=${model} family=${family} node=${node} onView=${onView} />
  <div class="list" ref=${list}>
    ${menu && open && html`<${FilterMenu} key=${menu.facet} model=${model} family=${family} column=${open} style=${menu.style} onView=${onView}
      onClose=${(/** @type {boolean} */ isLeft) => {
        if (!isLeft) menu.button.focus();
        setMenu((now) => (now === menu ? null : now)); // the next one may have taken its place
      }} />`}
    <div class="table" ref=${ref} tabindex="0" role="region" aria-label=${label} aria-busy=${String(rows !== family.rows)}>
      <table aria-rowcount=${family.hasMore ? -1 : rows.length + 1}>
        <thead><tr>${columns.map((column) => html`<${Heading}
          key=${column.title} column=${column} view=${view} onSort=${() => sort(column)} isOpen=${column === open}
          onFilter=${(/** @type {HTMLElement} */ button) => toggle(column, button)} />`)}</tr></thead>
        <tbody class=${rows === family.rows ? "" : "former"}>
          <${Space} lines=${first} columns=${columns.length} />
          ${rows.slice(first, last).map((row, place) => html`<tr key=${row.path} aria-rowindex=${first + place + 2}>
            ${columns.map((column) => html`<td key=${column.title} class=${isNumber(column) ? "number" : ""}>${column.cell(row)}</td>`)}
          </tr>`)}
          <${Space} lines=${count - Math.min(last, rows.length)} columns=${columns.length} />
        </tbody>
      </table>
      ${family.error && html`<p class="error" role="alert">${family.error} <button onClick=${() => model.retry(family)}>Try again</button></p>`}
      ${family.loading && !rows.length && html`<p class="quiet">Loading…</p>`}
      ${!rows.length && !family.hasMore && isFiltered(view) && html`<p class="quiet">No node meets this.</p>`}
    </div>
  </div>`;
}

/** @param {Model} model @param {Row[]} rows @param {View} view @param {boolean} areRoots @returns {Column[]} */
function columnsOf(model, rows, view, areRoots) {
  const { hierarchy } = model;
  const levels = new Set(rows.map((row) => row.level));
  const filtered = new Set(view.filters.map(({ facet }) => facet));
  /** @type {Map<string, Column & {count: number}>} */
  const found = new Map();
  for (const level of hierarchy.levels.filter(({ name }) => levels.has(name))) {
    for (const attribute of level.attributes.filter(isColumn)) {
      const field = responseName(hierarchy, level, attribute);
      const { name, type, orderField, facetField } = attribute;
      const count = rows.filter((row) => row[field] !== null && row[field] !== undefined).length;
      const cell = (/** @type {Row} */ row) => html`<${Value} value=${row[field]} type=${type} />`;
      if (count) found.set(field, { title: labelOf(attribute), order: orderField ?? null, facet: facetField ?? null, name, type, cell, count });
    }
  }
  const common = [...found.values()].sort((one, other) => other.count - one.count).slice(0, MAX_ATTRIBUTES);
  const attributes = [...found.values()].filter((column) => common.includes(column) || filtered.has(column.facet ?? ""));
  const plain = (/** @type {string} */ title, /** @type {string} */ order, /** @type {(row: Row) => any} */ cell) =>
    ({ title, order, facet: null, name: "", type: "", cell });
  /** @type {Column} */
  const level = { ...plain("Level", "LEVEL", (row) => levelWord(row.level)), facet: "LEVEL", name: "level", type: "Level" };
  const key = plain("Key", "KEY", (row) => html`<code>${row.key}</code>`); // it is the order of the list
  const path = plain("Path", "PATH", (row) => html`<code>${row.path}</code>`);
  const isDeep = view.isDeep || (areRoots && rows.some((row) => row.path.includes("/"))); // roots of a caller who may read a part
  const hasKeys = rows.some((row) => row.key !== row.name);
  const hasChildren = rows.some((row) => row.childCount);
  return [
    plain("Name", "NAME", (row) => html`<a href=${addressOf(hierarchy.name, row.path)}>${row.name}</a>`),
    ...(isDeep ? [path] : hasKeys ? [key] : []),
    ...(levels.size > 1 || filtered.has("LEVEL") ? [level] : []),
    ...attributes,
    ...(hasChildren ? [plain("Children", "CHILD_COUNT", (row) => childCounts(hierarchy, row))] : []),
  ];
}

/** @param {Column} column */
const isNumber = (column) => ["Int", "Long", "Float", "Decimal"].includes(column.type);

/**
 * @param {{column: Column, view: View, isOpen: boolean, onSort: () => void, onFilter: (button: HTMLElement) => void}} props
 */
function Heading({ column, view, isOpen, onSort, onFilter }) {
  const { title, facet } = column;
  const direction = view.order && view.order.field === column.order ? view.order.direction : null;
  const sorted = direction && { ASC: "ascending", DESC: "descending" }[direction];
  const mark = direction ? { ASC: "↑", DESC: "↓" }[direction] : "";
  const isUsed = view.filters.some((one) => one.facet === facet);
  // A press would take the focus from the menu, which closes then, and the click would open it again.
  const keep = (/** @type {Event} */ event) => event.preventDefault();
  return html`<th scope="col" abbr=${title} class=${isNumber(column) ? "number" : ""} aria-sort=${sorted ?? undefined}>
    ${column.order ? html`<button class="heading" onClick=${onSort}>${title} <span aria-hidden="true">${mark}</span></button>` : title}
    ${facet && html`<button class=${`heading funnel${isUsed ? " used" : ""}`} aria-label="Filter by ${title}" title="Filter by ${title}"
      aria-expanded=${String(isOpen)} aria-haspopup="dialog" aria-controls=${isOpen ? "filter" : undefined} onMouseDown=${keep}
      onClick=${(/** @type {any} */ { currentTarget }) => onFilter(currentTarget)}><svg viewBox="0 0 12 12" width="11" height="11"
      aria-hidden="true"><path d="M1 2h10L7.2 6.6V10L4.8 11V6.6Z" /></svg></button>`}
  </th>`;
}

/** Room for lines that are not in the document. @param {{lines: number, columns: number}} props */
function Space({ lines, columns }) {
  return lines > 0 ? html`<tr aria-hidden="true"><td colspan=${columns} class="space" style=${{ height: lines * HEIGHT }}></td></tr>` : null;
}
