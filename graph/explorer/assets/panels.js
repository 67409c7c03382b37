// The panels of a node: counts by level, a map of what has coordinates, and its history when somebody opens it.
import { html, useEffect, useMemo, useState } from "./vendor/preact.js";
import { countedLevels, levelOf, responseName } from "./documents.js";
import { sentence } from "./model.js";
import { number } from "./format.js";
import { State } from "./parts.js";
import { levelWord, plural } from "./words.js";
/** @import { Attribute } from "./documents" */
/** @import { Family, Model, Row } from "./model" */
/** @import { Written } from "./write_session" */

/**
 * A module that is loaded when it is first needed, null before, and a sentence where that failed.
 * @template T @param {() => Promise<T>} load @param {boolean} isNeeded @returns {{module: T | null, error: string}}
 */
export function useModule(load, isNeeded) {
  const [found, setFound] = useState(/** @type {{module: T | null, error: string}} */ ({ module: null, error: "" }));
  useEffect(() => {
    if (!isNeeded || found.module) return;
    load().then((module) => setFound({ module, error: "" }), (error) => setFound({ module: null, error: sentence(error) }));
  }, [isNeeded]);
  return found;
}

/** The counts below a node by level. @param {Model} model @param {Row} node */
function countsBelow(model, node) {
  return countedLevels(model.hierarchy)
    .map(({ name }) => ({ level: name, title: plural(levelWord(name)), count: node[`below_${name}`] ?? 0 }))
    .filter(({ count }) => count > 0);
}

/** Whether a value is a coordinate: others are stored, too, but lie nowhere on Earth. @param {unknown} value @param {number} limit */
const isDegrees = (value, limit) => typeof value === "number" && Math.abs(value) <= limit;

/**
 * What makes a node large among its siblings: the first of its numbers that is no coordinate, such as its population.
 * @param {Model} model @param {Row} row
 */
function weightOf({ hierarchy }, row) {
  const level = levelOf(hierarchy, row.level);
  const isNumber = (/** @type {Attribute} */ { name, type, orderField }) =>
    orderField && ["Int", "Long", "Float"].includes(type) && name !== hierarchy.latitudeField && name !== hierarchy.longitudeField;
  const attribute = level.attributes.find(isNumber);
  return Number(attribute ? row[responseName(hierarchy, level, attribute)] ?? 0 : row.childCount ?? 0);
}

/** Those of some nodes that have coordinates, as points. @param {Model} model @param {Row[]} rows */
function pointsOf(model, rows) {
  const { latitudeField, longitudeField } = model.hierarchy;
  if (!latitudeField || !longitudeField) return [];
  const points = rows.map((row) => (
    { path: row.path, name: row.name, latitude: row[latitudeField], longitude: row[longitudeField], weight: weightOf(model, row) }));
  return points.filter(({ latitude, longitude }) => isDegrees(latitude, 90) && isDegrees(longitude, 360));
}

/** @param {{model: Model, family: Family, node: Row | null, onOpen: (path: string) => void}} props */
export function Panels({ model, family, node, onOpen }) {
  const counts = node ? countsBelow(model, node) : [];
  const points = useMemo(() => pointsOf(model, [...family.rows, ...(node ? [node] : [])]), [model, family, family.rows, node]);
  const { module } = useModule(() => import("./map.js"), points.length > 0);
  if (!counts.length && !points.length) return null;
  return html`<section class="panels">
    ${points.length > 0 && (module ? html`<${module.WorldMap} points=${points} first=${family.hasMore ? family.rows.length : 0} onOpen=${onOpen} />` : html`<figure class="map"><svg /></figure>`)}
    ${counts.length > 0 && html`<${LevelBars} counts=${counts} />`}
  </section>`;
}

/**
 * A table with a bar in each row; bars are logarithmic where the numbers differ by a factor of 100 or more.
 * @param {{counts: {level: string, title: string, count: number}[]}} props
 */
export function LevelBars({ counts }) {
  const numbers = counts.map((one) => one.count).filter((count) => count > 0);
  const most = Math.max(...numbers, 1);
  const isLogarithmic = most / Math.min(...numbers, most) >= 100;
  const percent = (/** @type {number} */ count) => 100 * (isLogarithmic ? Math.log(count + 1) / Math.log(most + 1) : count / most);
  return html`<table class="bars">
    <caption>Nodes by level${isLogarithmic ? " (bars are logarithmic)" : ""}</caption>
    <tbody>
      ${counts.map(({ level, title, count }) => html`<tr key=${level}>
        <th scope="row">${title}</th>
        <td class="bars-count">${number(count)}</td>
        <td class="bars-bar" aria-hidden="true"><svg width="100%" height="8"><rect width="${percent(count)}%" height="8" rx="2" /></svg></td>
      </tr>`)}
    </tbody>
  </table>`;
}

/** @param {{model: Model, node: Row, onDone: (written: Written) => void}} props */
export function NodeHistory({ model, node, onDone }) {
  const [isOpen, setOpen] = useState(false);
  const { module, error } = useModule(() => import("./history.js"), isOpen);
  return html`<section><h2>History</h2>
    ${!isOpen && html`<button onClick=${() => setOpen(true)}>Show what changed</button>`}
    ${isOpen && module && html`<${module.History} api=${model.api} hierarchy=${model.hierarchy} node=${node} onDone=${onDone} />`}
    ${isOpen && error && html`<${State} kind="failed">${error}<//>`}
  </section>`;
}
