// The node on the right: its names, attributes and counts, where it stands, and its children as a table.
import { html, useState } from "./vendor/preact.js";
import { NEIGHBOURS, responseName } from "./documents.js";
import { distance, number, time } from "./format.js";
import { List } from "./list.js";
import { sentence } from "./model.js";
import { NodeHistory, Panels, useModule } from "./panels.js";
import { Icon, State } from "./parts.js";
import { Value } from "./value_view.js";
import { addressOf, fieldWords, languageWord, levelWord } from "./words.js";
import { WriteMenu } from "./writing.js";
/** @import { Family, Model, Row } from "./model" */
/** @import { NearQuery } from "./types" */
/** @import { View } from "./view" */
/** @import { Written } from "./write_session" */
/** @typedef {{model: Model, family: Family, view: View, graphiql: string, onView: (view: View) => void,
 *   onOpen: (path: string) => void, onDone: (written: Written) => void}} Common */

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
    <${List} ...${props} node=${null} title="Roots" />
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
    <${Attributes} key=${`attributes ${node.path}`} model=${model} node=${node} onDone=${props.onDone} />
    <${Names} names=${node.names ?? []} />
    <${Panels} ...${props} />
    ${node.childCount !== 0 && html`<${List} ...${props} title="Children" />`}
    <${Near} key=${`near ${node.path} ${node.revision}`} model=${model} node=${node} />
    <${NodeHistory} key=${`history ${node.path}`} model=${model} node=${node} onDone=${props.onDone} />
  </article>`;
}

/** @param {{model: Model, node: Row, onDone: (written: Written) => void}} props */
function Attributes({ model, node, onDone }) {
  const { hierarchy } = model;
  const [edited, setEdited] = useState("");
  const { module, error } = useModule(() => import("./inline_edit.js"), edited !== "");
  const end = (/** @type {Written | undefined} */ written) => {
    setEdited("");
    if (written) onDone(written);
  };
  const level = hierarchy.levels.find(({ name }) => name === node.level);
  const shown = (level?.attributes ?? []).map((attribute) => ({ ...attribute, value: node[responseName(hierarchy, /** @type {any} */ (level), attribute)] }));
  const filled = shown.filter(({ value, deprecated }) => value !== null && value !== undefined && !(deprecated && !value));
  return html`${filled.length > 0 && html`<dl class="attributes">
    ${filled.map(({ value, ...attribute }) => {
      const { name, type, description, computed } = attribute;
      if (name === edited && module) return html`<div key=${name} class="edited"><dd><${module.InlineEdit} model=${model} node=${node} attribute=${attribute} onEnd=${end} /></dd></div>`;
      return html`<div key=${name}>
        <dt title=${description}>${fieldWords(name)} ${hierarchy.mayWrite && !computed && html`<button type="button" class="edit" aria-label="Edit ${fieldWords(name)}"
          onClick=${() => setEdited(name)}><${Icon} name="update" /></button>`}</dt>
        <dd onDblClick=${() => hierarchy.mayWrite && !computed && setEdited(name)}><${Value} value=${value} type=${type} /></dd>
      </div>`;
    })}
    ${error && html`<${State} kind="failed">${error}<//>`}
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
      setError("");
      setFound(/** @type {NonNullable<NearQuery["found"]>} */ (data.found).edges.filter((edge) => edge.node.path !== node.path));
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  return html`<section><h2>Nearby</h2>
    ${found === null && html`<button onClick=${find}>Show what is near</button>`}
    ${error && html`<${State} kind="failed" onAction=${find}>${error}<//>`}
    ${found && html`<ul class="near">${found.map((/** @type {any} */ { kilometers, node: one }) => html`<li key=${one.path}>
      <a href=${addressOf(name, one.path)}>${one.name}</a> <span class="quiet">${levelWord(one.level)}, ${distance(kilometers)}</span>
    </li>`)}</ul>`}
    ${found && !found.length && html`<${State} kind="empty">Nothing is within 50 km.<//>`}
  </section>`;
}
