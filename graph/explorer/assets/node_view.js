// The node on the right: its names, attributes and counts, where it stands, and its children as a table.
import { html, useState } from "./vendor/preact.js";
import { NEIGHBOURS, responseName } from "./documents.js";
import { distance, number, time } from "./format.js";
import { sentence } from "./model.js";
import { NodeHistory, Panels } from "./panels.js";
import { ChildrenTable } from "./table.js";
import { Value } from "./value_view.js";
import { addressOf, fieldWords, languageWord, levelWord } from "./words.js";
import { WriteMenu } from "./writing.js";
/** @import { Family, Model, Order, Row } from "./model" */
/** @import { NearQuery } from "./types" */
/** @typedef {{model: Model, family: Family, onOrder: (order: Order | null) => void,
 *   onOpen: (path: string) => void, onDone: (path: string | null) => void}} Common */

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
    <${Children} ...${props} title="Roots" />
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
    ${node.stub && html`<p class="notice">Your key may read only the name of this node, and what is granted below it.</p>`}
    ${!node.stub && html`<${WriteMenu} api=${model.api} hierarchy=${hierarchy} node=${node} onDone=${props.onDone} />`}
    ${!node.stub && html`<${Attributes} model=${model} node=${node} />`}
    <${Names} names=${node.names ?? []} />
    <${Panels} ...${props} />
    ${node.childCount !== 0 && html`<${Children} ...${props} title="Children" />`}
    ${!node.stub && html`<${Near} key=${`near ${node.path} ${node.revision}`} model=${model} node=${node} />`}
    ${!node.stub && html`<${NodeHistory} key=${`history ${node.path}`} model=${model} node=${node} onOpen=${props.onDone} />`}
  </article>`;
}

/** @param {{model: Model, node: Row}} props */
function Attributes({ model, node }) {
  const { hierarchy } = model;
  const level = hierarchy.levels.find(({ name }) => name === node.level);
  const shown = (level?.attributes ?? []).map((attribute) => ({ ...attribute, value: node[responseName(hierarchy, /** @type {any} */ (level), attribute)] }));
  const filled = shown.filter(({ value, deprecated }) => value !== null && value !== undefined && !(deprecated && !value));
  return html`${filled.length > 0 && html`<dl class="attributes">
    ${filled.map(({ name, type, description, value }) => html`<div key=${name}>
      <dt title=${description}>${fieldWords(name)}</dt><dd><${Value} value=${value} type=${type} /></dd>
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

/** @param {Common & {title: string}} props */
function Children({ title, ...props }) {
  const { family } = props;
  const isEmpty = !family.rows.length && !family.hasMore && !family.error;
  return html`<section><h2>${title}</h2>
    ${isEmpty ? html`<p class="quiet">There are none that you may read.</p>` : html`<${ChildrenTable} ...${props} label=${title} />`}
  </section>`;
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
      const { data } = await model.api.ask(/** @type {string} */ (model.documents.near), { latitude, longitude, first: NEIGHBOURS + 1 });
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
    ${found && !found.length && html`<p class="quiet">Nothing is within 50 km.</p>`}
  </section>`;
}
