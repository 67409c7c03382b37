// The node on the right: its names, attributes and counts, where it stands, the menu of its mutations, its children as a
// table, a map of what has coordinates, and its history. Map and history are loaded when they are needed, the dialogs of
// mutations where the caller may write.
import { html, useEffect, useMemo, useState } from "./vendor/preact.js";
import { sentence } from "./api.js";
import { addressOf, countedLevels, isFiltered, levelOf, levelsBelow, responseName } from "./hierarchy.js";
import { ChildrenTable } from "./table.js";
import { distance, fieldWords, labelOf, languageWord, levelWord, number, plural, time, Value } from "./words.js";
/** @import { Verb } from "./forms" */
/** @import { Attribute, View } from "./hierarchy" */
/** @import { Family, Model, Row } from "./session" */
/** @import { NearQuery } from "./types" */
/** @import { Options } from "./write_dialog" */
/** @typedef {{model: Model, family: Family, onView: (view: View) => void,
 *   onOpen: (path: string) => void, onDone: (path: string | null) => void}} Common */

const NEIGHBOURS = 10;
const NEARBY = 50; // kilometers

/** @type {[Verb, string][]} */
const BUTTONS = [["update", "Edit"], ["create", "Add child"], ["rename", "Rename"], ["move", "Move"], ["reorder", "Reorder"], ["delete", "Delete"]];

/** @type {Partial<Record<Verb, string>>} the most frequent one first, and the one that takes away apart */
const LOOKS = { update: "primary", delete: "danger" };

/** The start of a hierarchy: what it is, and its roots. @param {Common} props */
export function HierarchyView(props) {
  const { hierarchy } = props.model;
  const levels = hierarchy.levels.map(({ name }) => levelWord(name)).join(", ");
  return html`<article>
    <header class="title"><h1>${fieldWords(hierarchy.listField)}</h1></header>
    <p>${hierarchy.description}</p>
    <p class="quiet">Levels: ${levels}.</p>
    <${WriteMenu} api=${props.model.api} hierarchy=${hierarchy} node=${null} onDone=${props.onDone} />
    <${Panels} ...${props} node=${null} />
    <${Children} ...${props} node=${null} title="Roots" />
    <${NodeHistory} model=${props.model} node=${null} onOpen=${props.onDone} />
  </article>`;
}

/** @param {Common & {node: Row}} props */
export function NodeView(props) {
  const { model, node } = props;
  const { hierarchy } = model;
  return html`<article>
    <nav aria-label="Breadcrumb"><ol class="breadcrumb">
      <li><a href=${addressOf(hierarchy.name)}>${fieldWords(hierarchy.listField)}</a></li>
      ${(node.ancestors ?? []).map((/** @type {Row} */ one) => html`<li key=${one.path}><a href=${addressOf(hierarchy.name, one.path)}>${one.name}</a></li>`)}
    </ol></nav>
    <header class="title">
      <h1>${node.name}</h1> <span class="level">${levelWord(node.level)}</span>
      <code class="path">${node.path}</code>
    </header>
    <${WriteMenu} api=${model.api} hierarchy=${hierarchy} node=${node} onDone=${props.onDone} />
    <${Attributes} model=${model} node=${node} />
    <${Names} names=${node.names ?? []} />
    <${Panels} ...${props} />
    ${node.childCount !== 0 && html`<${Children} ...${props} title="Children" />`}
    <${Near} key=${`near ${node.path} ${node.revision}`} model=${model} node=${node} />
    <${NodeHistory} key=${`history ${node.path}`} model=${model} node=${node} onOpen=${props.onDone} />
  </article>`;
}

/**
 * Opens the dialog of a mutation, with its dry run first where it has a draft.
 * Resolves to the path to show next, null for the roots, or undefined where nothing was written.
 * @param {Options} options @returns {Promise<string | null | undefined>}
 */
export const openWrite = async (options) => (await dialogs()).openDialog(options);

/**
 * Buttons for what can be written here; none where the caller may write nothing. Without a node they create a root.
 * @param {Pick<Options, "api" | "hierarchy"> & {node: any, onDone: (path: string | null) => void}} props - `node` has path and level
 */
function WriteMenu({ api, hierarchy, node, onDone }) {
  const [error, setError] = useState("");
  useEffect(() => {
    if (hierarchy.mayWrite) dialogs().catch(() => {}); // a click tries again
  }, [hierarchy]);
  if (!hierarchy.mayWrite) return null;
  const open = async (/** @type {Verb} */ verb) => {
    setError("");
    try {
      const path = await openWrite({ api, hierarchy, verb, path: node?.path ?? null });
      if (path !== undefined) onDone(path);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  const canAdd = levelsBelow(hierarchy, node).length > 0;
  const offered = node ? BUTTONS : /** @type {[Verb, string][]} */ ([["create", "Add root"]]);
  return html`<div class="write-menu" role="group" aria-label="Change ${node ? node.path : "the roots"}">
    ${offered.map(([verb, label]) => (verb !== "create" || canAdd) && html`<button type="button" key=${verb} class=${LOOKS[verb] ?? ""}
      onClick=${() => open(verb)}>${label}…</button>`)}
    ${error && html`<p class="write-error" role="alert">${error}</p>`}
  </div>`;
}

const dialogs = () => import("./write_dialog.js");

/** @param {{model: Model, node: Row}} props */
function Attributes({ model, node }) {
  const { hierarchy } = model;
  const level = hierarchy.levels.find(({ name }) => name === node.level);
  const shown = (level?.attributes ?? []).map((attribute) => ({ ...attribute, value: node[responseName(hierarchy, /** @type {any} */ (level), attribute)] }));
  const filled = shown.filter(({ value, deprecated }) => value !== null && value !== undefined && !(deprecated && !value));
  return html`${filled.length > 0 && html`<dl class="attributes">
    ${filled.map((one) => html`<div key=${one.name}>
      <dt title=${one.description}>${labelOf(one)}</dt><dd><${Value} value=${one.value} type=${one.type} /></dd>
    </div>`)}
  </dl>`}
  <dl class="facts" aria-label="About this node">
    <div><dt>Children</dt><dd>${number(node.childCount ?? 0)}</dd></div>
    ${node.childCount ? html`<div><dt>Descendants</dt><dd>${number(node.descendantCount)}</dd></div>` : null}
    <div><dt>Revision</dt><dd>${number(node.revision)}${node.changedBy ? ` by ${node.changedBy}` : ""}</dd></div>
    <div><dt>Changed</dt><dd><time datetime=${node.updatedAt}>${time(node.updatedAt)}</time></dd></div>
    <div><dt>ID</dt><dd><code>${node.id}</code></dd></div>
  </dl>`;
}

/** @param {{names: {language: string, text: string}[]}} props */
function Names({ names }) {
  if (!names.length) return null;
  return html`<section><h2>Names</h2><ul class="names">
    ${names.map(({ language, text }) => html`<li key=${language}><span class="quiet">${languageWord(language)}</span> <span lang=${language} dir="auto">${text}</span></li>`)}
  </ul></section>`;
}

/** @param {Common & {node: Row | null, title: string}} props */
function Children({ title, ...props }) {
  const { family } = props;
  const isEmpty = !family.rows.length && !family.hasMore && !family.error && !isFiltered(family.view);
  return html`<section><h2>${title}</h2>
    ${isEmpty ? html`<p class="quiet">There are none that you may read.</p>` : html`<${ChildrenTable} key=${family.path} ...${props} label=${title} />`}
  </section>`;
}

/** @param {{model: Model, family: Family, node: Row | null, onOpen: (path: string) => void}} props */
function Panels({ model, family, node, onOpen }) {
  const counts = node ? countsBelow(model, node) : [];
  const points = useMemo(() => pointsOf(model, [...family.shown, ...(node ? [node] : [])]), [model, family.shown, node]);
  const { module } = useModule(() => import("./map.js"), points.length > 0);
  if (!counts.length && !points.length) return null;
  return html`<section class="panels">
    ${points.length > 0 && (module ? html`<${module.WorldMap} points=${points} onOpen=${onOpen} />` : html`<figure class="map"><svg /></figure>`)}
    ${counts.length > 0 && html`<${LevelBars} counts=${counts} />`}
  </section>`;
}

/**
 * A table with a bar in each row; bars are logarithmic where the numbers differ by a factor of 100 or more.
 * @param {{counts: {level: string, title: string, count: number}[]}} props
 */
function LevelBars({ counts }) {
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

/** The counts below a node by level. @param {Model} model @param {Row} node */
function countsBelow(model, node) {
  return countedLevels(model.hierarchy)
    .map(({ name }) => ({ level: name, title: plural(levelWord(name)), count: node[`below_${name}`] ?? 0 }))
    .filter(({ count }) => count > 0);
}

/** Those of some nodes that have coordinates, as points. @param {Model} model @param {Row[]} rows */
function pointsOf(model, rows) {
  const { latitudeField, longitudeField } = model.hierarchy;
  if (!latitudeField || !longitudeField) return [];
  const points = rows.map((row) => (
    { path: row.path, name: row.name, latitude: row[latitudeField], longitude: row[longitudeField], weight: weightOf(model, row) }));
  return points.filter(({ latitude, longitude }) => isDegrees(latitude, 90) && isDegrees(longitude, 360));
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

/** The nodes near one, on demand. @param {{model: Model, node: Row}} props */
function Near({ model, node }) {
  const { latitudeField, longitudeField, name } = model.hierarchy;
  const [found, setFound] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState("");
  const latitude = latitudeField && node[latitudeField];
  const longitude = longitudeField && node[longitudeField];
  if (!model.documents.near || typeof latitude !== "number" || typeof longitude !== "number") return null;
  const find = async () => {
    try {
      const { data } = await model.api.ask(/** @type {string} */ (model.documents.near),
        { near: { latitude, longitude, kilometers: NEARBY }, first: NEIGHBOURS + 1 });
      setFound(/** @type {NonNullable<NearQuery["found"]>} */ (data.found).edges.filter((edge) => edge.node.path !== node.path));
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  return html`<section><h2>Nearby</h2>
    ${found === null && html`<button onClick=${find}>Show what is near</button>`}
    ${error && html`<p class="error">${error}</p>`}
    ${found && html`<ul class="near">${found.map((/** @type {any} */ { kilometers, node: one }) => html`<li key=${one.path}>
      <a href=${addressOf(name, one.path)}>${one.name}</a> <span class="quiet">${levelWord(one.level)}, ${distance(kilometers)}</span>
    </li>`)}</ul>`}
    ${found && !found.length && html`<p class="quiet">Nothing is within ${NEARBY} km.</p>`}
  </section>`;
}

/** What changed at a node; without one, which roots were deleted. @param {{model: Model, node: Row | null, onOpen: (path: string) => void}} props */
function NodeHistory({ model, node, onOpen }) {
  const [isOpen, setOpen] = useState(false);
  const { module, error } = useModule(() => import("./history.js"), isOpen);
  return html`<section><h2>History</h2>
    ${!isOpen && html`<button onClick=${() => setOpen(true)}>${node ? "Show what changed" : "Deletions of the last 90 days"}</button>`}
    ${isOpen && module && html`<${node ? module.History : module.Deletions} api=${model.api} hierarchy=${model.hierarchy} node=${node} onOpen=${onOpen} />`}
    ${isOpen && error && html`<p class="error" role="alert">${error}</p>`}
  </section>`;
}

/**
 * A module that is loaded when it is first needed, null before, and a sentence where that failed.
 * @template T @param {() => Promise<T>} load @param {boolean} isNeeded @returns {{module: T | null, error: string}}
 */
function useModule(load, isNeeded) {
  const [found, setFound] = useState(/** @type {{module: T | null, error: string}} */ ({ module: null, error: "" }));
  useEffect(() => {
    if (!isNeeded || found.module) return;
    load().then((module) => setFound({ module, error: "" }), (error) => setFound({ module: null, error: sentence(error) }));
  }, [isNeeded]);
  return found;
}
