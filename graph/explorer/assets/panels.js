// The panels between a node and its children: writing, counts by level, map and history.
import { html, useEffect, useState } from "./vendor/preact.js";
import { LevelBars } from "./bars.js";
import { History } from "./history.js";
import { WorldMap } from "./map.js";
import { countsBelow } from "./node_view.js";
import { WriteMenu } from "./writing.js";

/** @typedef {import("./node_view").Common} Common */
/** @typedef {import("./model").Row} Row */

/** @param {Common & {node: Row | null}} props */
export function Panels({ model, family, node, onOpen, onDone }) {
  const { api, hierarchy } = model;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [node?.path]);
  const points = pointsOf(model, [...(node ? [node] : []), ...family.rows]);
  const counts = node ? countsBelow(model, node) : [];
  const show = () => {
    api.begin();
    setOpen(!isOpen);
  };
  return html`
    ${!node?.stub && html`<${WriteMenu} api=${api} hierarchy=${hierarchy} node=${node} onDone=${onDone} />`}
    ${(counts.length > 1 || points.length > 0) && html`<div class="panels">
      ${counts.length > 1 && html`<section><${LevelBars} counts=${counts} /></section>`}
      ${points.length > 0 && html`<section><h2>Map</h2><${WorldMap} points=${points} onOpen=${onOpen} /></section>`}
    </div>`}
    ${node && !node.stub && html`<section><h2>History</h2>
      <button type="button" aria-expanded=${String(isOpen)} onClick=${show}>${isOpen ? "Hide history" : "Show history"}</button>
      ${isOpen && html`<${History} api=${api} hierarchy=${hierarchy} node=${node} onOpen=${onDone} />`}
    </section>`}`;
}

/**
 * The nodes with coordinates, as points of a map.
 * @param {Common["model"]} model @param {Row[]} rows
 */
function pointsOf({ hierarchy: { latitudeField, longitudeField } }, rows) {
  if (!latitudeField || !longitudeField) return [];
  const points = rows.map((row) => ({ path: row.path, name: row.name, latitude: row[latitudeField], longitude: row[longitudeField] }));
  return points.filter(({ latitude, longitude }) => typeof latitude === "number" && typeof longitude === "number");
}
