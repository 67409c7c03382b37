// List of nodes: its title with the total, the row of conditions, the choice of columns, the export, and the table.
import { html, useEffect, useState } from "./vendor/preact.js";
import { graphiqlAddress } from "./cost.js";
import { levelsBelow } from "./documents.js";
import { number } from "./format.js";
import { sentence } from "./model.js";
import { Icon, Menu, State } from "./parts.js";
import { columnsOf, Table } from "./table.js";
import { comparables, isWhole, OPERATORS, operatorsOf } from "./view.js";
import { fieldWords, levelWord } from "./words.js";
/** @import { Family, Model, Row } from "./model" */
/** @import { Column } from "./table" */
/** @import { Comparable, Condition, View } from "./view" */
/** @import { Written } from "./write_session" */
/** @typedef {{model: Model, family: Family, view: View, node: Row | null, graphiql: string, onView: (view: View) => void,
 *   onDone: (written: Written) => void}} Props */

/** @param {Props & {title: string}} props */
export function List({ title, ...props }) {
  const { model, family, view, node, graphiql, onView } = props;
  const [isFiltered, setFiltered] = useState(false);
  const shown = family.rows.length ? family : model.family(family.path); // while it is read, and if that fails
  const { all, chosen } = columnsOf(model, shown.rows, view);
  const whole = isWhole(view);
  const total = whole && node ? node.childCount : family.total;
  const isEmpty = !family.rows.length && !family.hasMore && !family.error;
  if (isEmpty && whole) return html`<section><h2>${title}</h2><${State} kind="empty">There are none that you may read.<//></section>`;
  return html`<section class="list">
    <header>
      <h2>${view.isBelow ? "Descendants" : title} ${total !== null && html`<span class="total">${number(total)}</span>`}</h2>
      <button type="button" aria-expanded=${String(isFiltered || !whole)} onClick=${() => setFiltered(!isFiltered)}><${Icon} name="filter" />Filter</button>
      <${Menu} label=${html`<${Icon} name="columns" />Columns`}><${Columns} all=${all} chosen=${chosen} onChange=${(/** @type {string[] | null} */ columns) => onView({ ...view, columns })} /><//>
      <${Menu} label=${html`<${Icon} name="export" />Export`}><${Export} model=${model} family=${family} columns=${chosen} total=${total} /><//>
      ${graphiql && html`<${QueryLink} model=${model} family=${family} graphiql=${graphiql} />`}
    </header>
    ${(isFiltered || !whole) && html`<${Filters} model=${model} view=${view} node=${node} onView=${onView} />`}
    ${isEmpty
    ? html`<${State} kind="empty" action="Show all" onAction=${() => onView({ ...view, levels: [], conditions: [] })}>None of them meets these conditions.<//>`
    : html`<${Table} ...${props} columns=${chosen} label=${title} />`}
  </section>`;
}

/** @param {{model: Model, family: Family, graphiql: string}} props */
function QueryLink({ model, family, graphiql }) {
  try {
    const call = /** @type {any} */ (model.queryOf(Object.assign(Object.create(family), { cursor: null })));
    return html`<a class="button" href=${graphiqlAddress(graphiql, call)} target="_blank" rel="noopener"><${Icon} name="query" />Query</a>`;
  } catch {
    return null; // a condition that is none has no query
  }
}

// -- conditions --------------------------------------------------------------------------------------------------------

/** @param {{model: Model, view: View, node: Row | null, onView: (view: View) => void}} props */
function Filters({ model, view, node, onView }) {
  const { hierarchy } = model;
  const fields = comparables(hierarchy);
  const { conditions } = view;
  const set = (/** @type {number} */ at, /** @type {Condition | null} */ condition) =>
    onView({ ...view, conditions: [...conditions.slice(0, at), ...(condition ? [condition] : []), ...conditions.slice(at + 1)] });
  const levels = view.isBelow ? hierarchy.levels.filter((one) => one.under.length) : levelsBelow(hierarchy, node);
  const several = view.levels.length > 1 ? [[view.levels.join(","), view.levels.map(levelWord).join(", ")]] : [];
  const shown = [...conditions, { field: "name", operator: "contains", value: "" }];
  return html`<div class="filters" role="group" aria-label="Filter">
    ${node && node.descendantCount > (node.childCount ?? 0) && html`<${Select} label="Which nodes" value=${view.isBelow ? "1" : ""}
      options=${[["", "Children"], ["1", "All descendants"]]} onChange=${(/** @type {string} */ is) => onView({ ...view, isBelow: Boolean(is) })} />`}
    ${(levels.length > 1 || view.levels.length > 0) && html`<${Select} label="Level" value=${view.levels.join(",")}
      options=${[["", "Any level"], ...several, ...levels.map((one) => [one.name, levelWord(one.name)])]}
      onChange=${(/** @type {string} */ level) => onView({ ...view, levels: level ? level.split(",") : [] })} />`}
    ${shown.map((one, at) => html`<${ConditionFields} key=${at} condition=${one} fields=${fields} isNew=${at === conditions.length}
      onChange=${(/** @type {Condition | null} */ condition) => set(at, condition)} />`)}
  </div>`;
}

/**
 * The fields of a condition; it is applied once it has something to compare with, and removed when that is cleared.
 * @param {{condition: Condition, fields: Comparable[], isNew: boolean, onChange: (condition: Condition | null) => void}} props
 */
function ConditionFields({ condition, fields, isNew, onChange }) {
  const [draft, setDraft] = useState(condition);
  useEffect(() => setDraft(condition), [condition.field, condition.operator, condition.value]);
  const { field, operator, value } = draft;
  const one = fields.find(({ name }) => name === field) ?? { name: field, type: "String" };
  const isYes = operator === "isNull" || one.type === "Boolean";
  const values = isYes ? [["true", "yes"], ["false", "no"]] : one.values?.map((each) => [each, levelWord(each)]);
  const change = (/** @type {Partial<Condition>} */ part) => {
    const next = { ...draft, ...part };
    setDraft(next);
    if (next.value !== "") onChange(next);
  };
  const setField = (/** @type {string} */ name) =>
    change({ field: name, operator: operatorsOf(fields.find((other) => other.name === name) ?? one)[0], value: "" });
  const setOperator = (/** @type {string} */ to) =>
    change({ operator: to, value: (to === "isNull") === (operator === "isNull") ? value : to === "isNull" ? "true" : "" });
  const setValue = (/** @type {string} */ to) => (to || isNew ? change({ value: to }) : onChange(null));
  return html`<div class="condition" role="group" aria-label=${isNew ? "New condition" : `${fieldWords(condition.field)} ${OPERATORS[condition.operator] ?? condition.operator} ${condition.value}`}>
    <${Select} label="Value of" value=${field} options=${fields.map(({ name }) => [name, fieldWords(name)])} onChange=${setField} />
    <${Select} label="Comparison" value=${operator} options=${operatorsOf(one).map((each) => [each, OPERATORS[each]])} onChange=${setOperator} />
    ${values ? html`<${Select} label="Compared with" value=${value} options=${[["", "…"], ...values]} onChange=${setValue} />`
    : html`<input aria-label="Compared with" type=${one.type === "Date" ? "date" : "text"} value=${value} placeholder=${isNew ? "Add a condition" : ""}
        spellcheck=${false} onChange=${(/** @type {any} */ event) => setValue(event.target.value.trim())} />`}
    ${!isNew && html`<button type="button" aria-label="Remove this condition" onClick=${() => onChange(null)}><${Icon} name="none" /></button>`}
  </div>`;
}

/** @param {{label: string, value: string, options: string[][], onChange: (value: string) => void}} props */
const Select = ({ label, value, options, onChange }) => html`<select aria-label=${label} value=${value}
  onChange=${(/** @type {any} */ event) => onChange(event.target.value)}>
  ${options.map(([one, text]) => html`<option key=${one} value=${one} selected=${one === value}>${text}</option>`)}
</select>`;

// -- columns and export ------------------------------------------------------------------------------------------------

/** @param {{all: Column[], chosen: Column[], onChange: (columns: string[] | null) => void}} props */
function Columns({ all, chosen, onChange }) {
  const ids = chosen.map(({ id }) => id);
  const others = all.filter(({ id }) => !ids.includes(id));
  const toggle = (/** @type {string} */ id) => onChange(ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id]);
  const move = (/** @type {number} */ at, /** @type {number} */ by) => onChange(ids.with(at, ids[at + by]).with(at + by, ids[at]));
  return html`<ul class="columns">${[...chosen, ...others].map(({ id, title }, at) => html`<li key=${id}>
      <label><input type="checkbox" checked=${at < ids.length} disabled=${ids.length === 1 && at === 0} onChange=${() => toggle(id)} /> ${title}</label>
      ${at > 0 && at < ids.length && html`<button type="button" aria-label="Move ${title} to the left" onClick=${() => move(at, -1)}>←</button>`}
      ${at < ids.length - 1 && html`<button type="button" aria-label="Move ${title} to the right" onClick=${() => move(at, 1)}>→</button>`}
    </li>`)}</ul>
    <button type="button" onClick=${() => onChange(null)}>Usual columns</button>`;
}

/** @param {{model: Model, family: Family, columns: Column[], total: number | null}} props */
function Export({ model, family, columns, total }) {
  const [said, setSaid] = useState("");
  const write = async (/** @type {"csv" | "jsonl"} */ format) => {
    try {
      setSaid("Reading…");
      const { exported } = await import("./export.js");
      const report = (/** @type {number} */ count) => setSaid(`${number(count)}${total ? ` of ${number(total)}` : ""} read.`);
      setSaid(`${number(await exported(model, family, columns, format, report))} written.`);
    } catch (error) {
      setSaid(sentence(error));
    }
  };
  return html`<p>All nodes of this list, with the columns that are shown.</p>
    <button type="button" onClick=${() => write("csv")}>CSV</button> <button type="button" onClick=${() => write("jsonl")}>JSON lines</button>
    <p role="status">${said}</p>`;
}
