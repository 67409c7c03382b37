// Table of a list: sorted by a click on a header, read page by page while it is scrolled, with rows that can be selected.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { responseName } from "./documents.js";
import { quantity } from "./format.js";
import { State } from "./parts.js";
import { childCounts } from "./tree.js";
import { Value } from "./value_view.js";
import { keptScroll, useKeptScroll, useWindow } from "./windowing.js";
import { addressOf, fieldWords, levelWord } from "./words.js";
import { openWrite } from "./writing.js";
/** @import { Family, Model, Order, Row } from "./model" */
/** @import { View } from "./view" */
/** @import { Written } from "./write_session" */
/** `id` is that of the address, `field` that of a row. @typedef {{id: string, title: string, order: string | null, field: string, type?: string, cell: (row: Row) => any}} Column */

const HEIGHT = 36;
const MAX_ATTRIBUTES = 6; // columns, those first that most of the loaded rows have
const MAX_SELECTED = 100; // changes in one transaction
const MAX_VISIBLE = 40;
const MAX_KEPT = 2000; // rows that are read again to show the place where one was

/**
 * All columns of a list, and those that are shown: the chosen ones, else those with values.
 * @param {Model} model @param {Row[]} rows @param {View} view @returns {{all: Column[], chosen: Column[]}}
 */
export function columnsOf({ hierarchy }, rows, { columns: names, isBelow }) {
  /** @type {Map<string, Column>} */
  const attributes = new Map();
  for (const level of hierarchy.levels) {
    for (const attribute of level.attributes.filter((one) => one.orderField)) {
      const { type, orderField = null } = attribute;
      const field = responseName(hierarchy, level, attribute);
      const title = fieldWords(attribute.name) + (field === attribute.name ? "" : ` (${levelWord(level.name)})`);
      attributes.set(field, { id: field, title, order: orderField, field, type, cell: (row) => html`<${Value} value=${row[field]} type=${type} />` });
    }
  }
  /** @type {Column[]} */
  const fixed = [
    { id: "name", title: "Name", order: "NAME", field: "name", cell: (row) => html`<a href=${addressOf(hierarchy.name, row.path)}>${row.name}</a>` },
    { id: "key", title: "Key", order: "KEY", field: "key", cell: (row) => html`<code>${row.key}</code>` }, // the order of the list
    { id: "path", title: "Path", order: "PATH", field: "path", cell: (row) => html`<code>${row.path}</code>` },
    { id: "level", title: "Level", order: "LEVEL", field: "level", cell: (row) => levelWord(row.level) },
  ];
  /** @type {Column} */
  const children = { id: "children", title: "Children", order: "CHILD_COUNT", field: "childCount", cell: (row) => childCounts(hierarchy, row) };
  const all = [...fixed, ...attributes.values(), children];
  if (names) return { all, chosen: names.flatMap((name) => all.find(({ id }) => id === name) ?? []) };
  const count = (/** @type {Column} */ { field }) => rows.filter((row) => row[field] !== null && row[field] !== undefined).length;
  const filled = [...attributes.values()].map((column) => ({ column, count: count(column) })).filter((one) => one.count)
    .sort((one, other) => other.count - one.count).slice(0, MAX_ATTRIBUTES).map(({ column }) => column);
  /** @type {Record<string, boolean>} */
  const isUsed = { name: true, path: isBelow, key: rows.some((row) => row.key !== row.name), level: new Set(rows.map((row) => row.level)).size > 1,
    children: rows.some((row) => row.childCount) };
  return { all, chosen: all.filter((column) => isUsed[column.id] || filled.includes(column)) };
}

/** @param {{model: Model, family: Family, view: View, columns: Column[], label: string, onView: (view: View) => void,
 *   onDone: (written: Written) => void}} props */
export function Table({ model, family, view, columns, label, onView, onDone }) {
  const former = useRef(family);
  const isReading = !family.rows.length && family.hasMore && !family.error;
  if (!isReading || former.current.path !== family.path) former.current = family;
  const { rows } = former.current; // those of the former order while the next one is read
  const count = rows.length + (family.hasMore ? 1 : 0);
  const { ref, first, last } = useWindow(count, HEIGHT);
  const place = keptScroll("table");
  const kept = place ? Math.min(place / HEIGHT + MAX_VISIBLE, MAX_KEPT) : 0;
  useKeptScroll(ref, "table", family, rows.length > (family.hasMore ? kept : 0));
  useEffect(() => {
    const wanted = Math.max(last, kept);
    // An effect may run after the page that it would ask for has come.
    if (family.hasMore && !family.error && wanted >= family.rows.length) model.load(family);
  });
  const press = (/** @type {Column} */ column) => {
    const { order } = view;
    const direction = order?.field !== column.order ? "ASC" : order.direction === "ASC" ? "DESC" : null;
    onView({ ...view, order: direction && { field: /** @type {string} */ (column.order), direction } });
  };
  const { mayWrite } = model.hierarchy;
  const selection = useSelection(family, rows);
  return html`${mayWrite && selection.rows.length > 0 && html`<${Selected} model=${model} selection=${selection} path=${family.path} onDone=${onDone} />`}
  <div class="table" ref=${ref} tabindex="0" role="region" aria-label=${label} aria-busy=${isReading}>
    <table aria-rowcount=${family.hasMore ? -1 : rows.length + 1}>
      <thead><tr>
        ${mayWrite && html`<td class="check"><input type="checkbox" aria-label="Select all that are loaded, up to ${MAX_SELECTED}"
          checked=${selection.rows.length > 0} onChange=${selection.all} /></td>`}
        ${columns.map((column) => html`<${Heading} key=${column.id} column=${column} order=${view.order} onPress=${column.order ? () => press(column) : null} />`)}
      </tr></thead>
      <tbody class=${isReading ? "former" : ""}>
        <${Space} lines=${first} columns=${columns.length} />
        ${rows.slice(first, last).map((row, place) => html`<tr key=${row.path} aria-rowindex=${first + place + 2} class=${selection.has(row) ? "selected" : ""}>
          ${mayWrite && html`<td class="check"><input type="checkbox" aria-label="Select ${row.name}" checked=${selection.has(row)}
            onClick=${(/** @type {MouseEvent} */ event) => selection.toggle(first + place, event.shiftKey)} /></td>`}
          ${columns.map((column) => html`<td key=${column.id} class=${isNumber(column) ? "number" : ""}>${column.cell(row)}</td>`)}
        </tr>`)}
        <${Space} lines=${count - Math.min(last, rows.length)} columns=${columns.length} />
      </tbody>
    </table>
    ${family.error && html`<${State} kind="failed" onAction=${() => model.retry(family)}>${family.error}<//>`}
    ${isReading && html`<${State} kind="loading" />`}
  </div>`;
}

/**
 * The rows of a list that are selected; those that are gone are not. With `isRange` all rows from the last one are.
 * @param {Family} family @param {Row[]} rows
 */
function useSelection(family, rows) {
  const [state, setState] = useState({ path: family.path, paths: new Set(/** @type {string[]} */ ([])), last: 0 });
  const paths = state.path === family.path ? state.paths : new Set(/** @type {string[]} */ ([]));
  const set = (/** @type {Iterable<string>} */ to, last = 0) => setState({ path: family.path, paths: new Set([...to].slice(0, MAX_SELECTED)), last });
  return {
    rows: rows.filter(({ path }) => paths.has(path)),
    has: (/** @type {Row} */ { path }) => paths.has(path),
    clear: () => set([]),
    all: () => set(paths.size ? [] : rows.map(({ path }) => path)),
    toggle: (/** @type {number} */ at, /** @type {boolean} */ isRange) => {
      const from = isRange ? state.last : at;
      const range = rows.slice(Math.min(from, at), Math.max(from, at) + 1).map(({ path }) => path);
      set(paths.has(rows[at].path) ? [...paths].filter((path) => !range.includes(path)) : [...paths, ...range], at);
    },
  };
}

/** @param {{model: Model, selection: ReturnType<typeof useSelection>, path: string, onDone: (written: Written) => void}} props */
function Selected({ model: { api, hierarchy }, selection, path, onDone }) {
  const [error, setError] = useState("");
  const { rows } = selection;
  const open = async (/** @type {any} */ verb) => {
    setError("");
    try {
      const written = await openWrite({ api, hierarchy, verb, path: path || null, rows });
      if (!written) return;
      selection.clear();
      onDone(written);
    } catch (failure) {
      setError(/** @type {Error} */ (failure).message);
    }
  };
  return html`<div class="selected" role="group" aria-label="Selected nodes">
    <strong>${quantity(rows.length, "node")} selected${rows.length === MAX_SELECTED ? ", the most that are changed at once" : ""}</strong>
    <button type="button" onClick=${() => open("set")}>Change a value…</button>
    <button type="button" onClick=${() => open("move")}>Move…</button>
    <button type="button" class="danger" onClick=${() => open("delete")}>Delete…</button>
    <button type="button" onClick=${selection.clear}>Select none</button>
    ${error && html`<${State} kind="failed">${error}<//>`}
  </div>`;
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
  return lines > 0 ? html`<tr aria-hidden="true"><td colspan=${columns + 1} class="space" style=${{ height: lines * HEIGHT }}></td></tr>` : null;
}
