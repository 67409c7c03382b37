// The panels of a node: counts by level, a map of what has coordinates, and its history when somebody opens it.
import { html, useEffect, useMemo, useState } from "./vendor/preact.js";
import { LevelBars } from "./bars.js";
import { countedLevels } from "./documents.js";
import { WorldMap } from "./map.js";
import { sentence } from "./model.js";
import { levelWord, plural } from "./words.js";

/** @typedef {import("./model").Model} Model */
/** @typedef {import("./model").Family} Family */
/** @typedef {import("./model").Row} Row */

/** The counts below a node by level. @param {Model} model @param {Row} node */
function countsBelow(model, node) {
  return countedLevels(model.hierarchy)
    .map(({ name }) => ({ level: name, title: plural(levelWord(name)), count: node[`below_${name}`] ?? 0 }))
    .filter(({ count }) => count > 0);
}

/** Those of some nodes that have coordinates, as points. @param {Model} model @param {Row[]} rows */
function pointsOf({ hierarchy }, rows) {
  const { latitudeField, longitudeField } = hierarchy;
  if (!latitudeField || !longitudeField) return [];
  const points = rows.map((row) => ({ path: row.path, name: row.name, latitude: row[latitudeField], longitude: row[longitudeField] }));
  return points.filter(({ latitude, longitude }) => typeof latitude === "number" && typeof longitude === "number");
}

/** @param {{model: Model, version: number, family: Family, node: Row | null, onOpen: (path: string) => void}} props */
export function Panels({ model, family, node, onOpen }) {
  const counts = node && !node.stub ? countsBelow(model, node) : [];
  const points = useMemo(() => pointsOf(model, [...family.rows, ...(node ? [node] : [])]), [model, family, family.rows, node]);
  if (!counts.length && !points.length) return null;
  return html`<section class="panels">
    ${points.length > 0 && html`<${WorldMap} points=${points} onOpen=${onOpen} />`}
    ${counts.length > 0 && html`<${LevelBars} counts=${counts} />`}
  </section>`;
}

/** @param {{model: Model, node: Row, onOpen: (path: string) => void}} props */
export function NodeHistory({ model, node, onOpen }) {
  const [History, setHistory] = useState(/** @type {any} */ (null)); // loaded when somebody opens it
  const [error, setError] = useState("");
  useEffect(() => setHistory(null), [node.path]);
  const open = async () => {
    setError("");
    try {
      const module = await import("./history.js");
      setHistory(() => module.History);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  return html`<section><h2>History</h2>
    ${History
      ? html`<${History} api=${model.api} hierarchy=${model.hierarchy} node=${node} onOpen=${onOpen} />`
      : html`<button onClick=${open}>Show what changed</button>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
  </section>`;
}
