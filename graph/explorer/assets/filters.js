// Filters of a table: above it which list it shows, a text to search for, and what it is filtered by; below the header of a
// column a menu of the values in the list with their numbers.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { sentence } from "./api.js";
import { elementType, isFiltered, operand } from "./hierarchy.js";
import { isLongEnough, MAX_CHARACTERS, PAUSE_MS } from "./search.js";
import { formatted, number } from "./words.js";
/** @import { Filter, View } from "./hierarchy" */
/** @import { Facet, Family, Model, Row } from "./session" */
/** @import { Column } from "./table" */
/** @typedef {Column & {facet: string}} Counted - a column whose values lists can count */

const [FEW, MANY] = [20, 100]; // values that a menu shows at first, and at most
const SHORT = 10; // nodes of a list that needs no search
const RANGES = ["Int", "Long", "Float", "Decimal", "Date", "DateTime"];

/** @param {Counted} column @returns {Filter} */
const noFilter = ({ facet, name, title, type }) => ({ facet, name, label: title, type, values: [], from: "", to: "", isMissing: false });

/** A view with another filter of one column, or without one. @param {View} view @param {Filter} filter @returns {View} */
function withFilter(view, filter) {
  const isEmpty = !filter.values.length && !filter.from && !filter.to && !filter.isMissing;
  const others = view.filters.filter(({ facet }) => facet !== filter.facet);
  return { ...view, filters: isEmpty ? others : [...others, filter] };
}

/** A value of a facet as people read it. @param {string} type @param {string} value */
const valueText = (type, value) => (value.trim() ? formatted(operand(type, value), elementType(type)) : "(blank)");

/**
 * What is above a table.
 * @param {{model: Model, family: Family, node: Row | null, onView: (view: View) => void}} props - of a node its descendants
 *   can be listed
 */
export function ListBar({ model, family, node, onView }) {
  const { view, total } = family;
  const all = view.isDeep ? node?.descendantCount : model.family(family.path).total;
  const canGoDeep = view.isDeep || (node?.descendantCount ?? 0) > (node?.childCount ?? 0);
  const choice = (/** @type {boolean} */ isDeep, /** @type {string} */ text) => html`<button type="button"
    aria-pressed=${String(view.isDeep === isDeep)} onClick=${() => onView({ ...view, isDeep })}>${text}</button>`;
  const clear = () => onView({ ...view, filters: [], text: "" });
  const canSearch = model.hierarchy.searchField && (view.isDeep || view.text || (model.family(family.path).total ?? 0) > SHORT);
  return html`<div class="list-bar">
    ${canGoDeep && html`<div class="choice" role="group" aria-label="List">${choice(false, "Children")}${choice(true, "All below")}</div>`}
    ${canSearch && html`<${SearchBox} model=${model} view=${view} onView=${onView} />`}
    <span role="status" class="quiet">${isFiltered(view) && total !== null ? countText(total, all) : ""}</span>
    ${isFiltered(view) && html`<ul class="chips" aria-label="Filters">${chipsOf(view).map(({ text, rest }) => html`<li key=${text}>
      <button type="button" aria-label="Remove the filter ${text}" onClick=${() => onView(rest)}>
        <span>${text}</span> <span aria-hidden="true">×</span></button></li>`)}
      <li key="all"><button type="button" class="plain" onClick=${clear}>Clear the filter</button></li>
    </ul>`}
  </div>`;
}

/** The words that the nodes of a list are searched for. @param {{model: Model, view: View, onView: (view: View) => void}} props */
function SearchBox({ model, view, onView }) {
  const [text, setText] = useState(view.text);
  useEffect(() => setText((old) => (old.trim() === view.text ? old : view.text)), [view.text]);
  useEffect(() => {
    const words = isLongEnough(text.trim()) ? text.trim() : "";
    const timer = setTimeout(() => {
      if (words === view.text) return;
      model.api.begin();
      onView({ ...view, text: words });
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, view]);
  return html`<input type="search" aria-label="Search in this list" placeholder="Search in this list" value=${text} autocomplete="off"
    spellcheck=${false} maxlength=${MAX_CHARACTERS} onInput=${(/** @type {any} */ { target }) => setText(target.value)} />`;
}

/** @param {number} total @param {number | null | undefined} all */
const countText = (total, all) => (typeof all === "number" ? `${number(total)} of ${number(all)}` : `${number(total)} found`);

/** What the columns of a view are filtered by, each part with the view without it. @param {View} view @returns {{text: string, rest: View}[]} */
function chipsOf(view) {
  return view.filters.flatMap((filter) => {
    const { label, type, values, from, to, isMissing } = filter;
    const [least, most] = [from, to].map((one) => one && valueText(type, one));
    const range = from && to ? `${least} to ${most}` : from ? `from ${least}` : to ? `up to ${most}` : isMissing ? "no value" : "";
    const rest = withFilter(view, { ...filter, from: "", to: "", isMissing: false });
    const chosen = values.map((value) => (
      { text: `${label}: ${valueText(type, value)}`, rest: withFilter(view, { ...filter, values: values.filter((one) => one !== value) }) }));
    return range ? [{ text: `${label}: ${range}`, rest }] : chosen;
  });
}

/**
 * The menu of a column: its values in the list with their numbers, each a choice, and a range of numbers and dates.
 * @param {{model: Model, family: Family, column: Counted, style: {[name: string]: string}, onView: (view: View) => void,
 *   onClose: (isLeft: boolean) => void}} props - it is left where the focus went elsewhere
 */
export function FilterMenu({ model, family, column, style, onView, onClose }) {
  const { facet, title, type } = column;
  const { values, from, to, isMissing } = family.view.filters.find((one) => one.facet === facet) ?? noFilter(column);
  const [found, setFound] = useState(/** @type {Facet | null} */ (null));
  const [error, setError] = useState("");
  const [first, setFirst] = useState(FEW);
  const [range, setRange] = useState({ from, to });
  const menu = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => menu.current?.focus({ preventScroll: true }), []);
  useEffect(() => menu.current?.scrollIntoView({ block: "nearest" }), [found !== null]);
  useEffect(() => {
    let isLate = false;
    const take = (/** @type {Facet | null} */ facets, /** @type {string} */ said) => {
      if (isLate) return;
      setFound(facets);
      setError(said);
    };
    model.facet(family, facet, first).then((one) => take(one, ""), (failure) => take(null, sentence(failure)));
    return () => {
      isLate = true;
    };
  }, [family, first]);

  const apply = (/** @type {Partial<Filter>} */ part) => {
    setRange({ from: part.from ?? "", to: part.to ?? "" });
    onView(withFilter(family.view, { ...noFilter(column), ...part }));
  };
  const choose = (/** @type {string} */ value) => {
    const others = values.filter((one) => one !== value);
    apply({ values: others.length < values.length ? others : type === "Boolean" ? [value] : [...values, value] });
  };
  const bound = (/** @type {"from" | "to"} */ end, /** @type {string} */ label) => html`<label>${label}
    <input type=${type === "Date" ? "date" : "text"} autocomplete="off" value=${range[end]}
      onInput=${(/** @type {any} */ { target }) => setRange({ ...range, [end]: target.value })} /></label>`;
  const showMore = () => {
    menu.current?.focus(); // its button goes
    setFirst(MANY);
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    apply({ from: range.from.trim(), to: range.to.trim() });
  };
  const choiceOf = (/** @type {string} */ key, /** @type {string} */ text, /** @type {number} */ count, /** @type {boolean} */ isChosen,
    /** @type {() => void} */ onChange) => html`<li key=${key}><label title=${text}><input type="checkbox" checked=${isChosen}
      onChange=${onChange} /> <span class="value">${text}</span> <span class="quiet">${number(count)}</span></label></li>`;
  const isOutside = (/** @type {FocusEvent} */ { currentTarget, relatedTarget }) =>
    !(/** @type {Element} */ (currentTarget)).contains(/** @type {Node | null} */ (relatedTarget));
  const more = found ? found.distinctCount - found.values.length : 0;
  return html`<div class="popup filter" id="filter" role="dialog" aria-label="Filter by ${title}" tabindex="-1" ref=${menu} style=${style}
    onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === "Escape" && onClose(false)}
    onfocusout=${(/** @type {FocusEvent} */ event) => isOutside(event) && onClose(true)}>
    ${RANGES.includes(type) && html`<form novalidate onSubmit=${submit}>
      ${found?.minimum && html`<p class="quiet">${valueText(type, found.minimum)} to ${valueText(type, found.maximum ?? "")}</p>`}
      ${bound("from", "From")} ${bound("to", "To")} <button>Apply</button>
    </form>`}
    ${found && html`<ul aria-label="Values">
      ${found.values.map(({ value, count }) => choiceOf(value, valueText(type, value), count, values.includes(value), () => choose(value)))}
      ${(found.missingCount > 0 || isMissing) && choiceOf("/", "no value", found.missingCount, isMissing, () => apply({ isMissing: !isMissing }))}
    </ul>`}
    ${more > 0 && (first < MANY ? html`<button type="button" onClick=${showMore}>${number(more)} more…</button>`
      : html`<p class="quiet">and ${number(more)} more values</p>`)}
    <p role="status" class="quiet">${!found && !error ? "Counting…" : found && !found.distinctCount && !found.missingCount ? "There are no values." : ""}</p>
    ${error && html`<p class="failed" role="alert">${error}</p>`}
  </div>`;
}
