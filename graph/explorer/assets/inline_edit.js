// Edit of one value in its place: its field, the dry run as a line below, and the second Enter that writes.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { levelOf } from "./documents.js";
import { AttributeField } from "./fields.js";
import { quantity } from "./format.js";
import { drafted } from "./forms.js";
import { State } from "./parts.js";
import { differences } from "./values.js";
import { Conflict } from "./write_dialog.js";
import { WriteSession } from "./write_session.js";
/** @import { Attribute } from "./documents" */
/** @import { Model, Row } from "./model" */
/** @import { Written } from "./write_session" */

/** @param {{model: Model, node: Row, attribute: Attribute, onEnd: (written?: Written) => void}} props - nothing is written without `written` */
export function InlineEdit({ model: { api, hierarchy }, node, attribute, onEnd }) {
  const [, redraw] = useState(0);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [session] = useState(() => new WriteSession({ api, hierarchy, verb: "update", path: node.path }, () => redraw((old) => old + 1), onEnd));
  const { draft, errors, plan } = session;
  useEffect(() => void session.start(), []);
  useEffect(() => /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector("input, select, textarea"))?.focus(), [draft === null]);
  if (session.step === "conflict") return html`<div class="write-here"><${Conflict} session=${session} /></div>`;
  if (!draft) return html`<div class="write-here"><${State} kind=${errors[""] ? "failed" : "loading"}>${errors[""] || undefined}<//></div>`;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const field = [...(form.current?.elements ?? [])].find((one) => one instanceof HTMLInputElement && !one.validity.valid);
    if (field) session.refuse({ [attribute.name]: /** @type {HTMLInputElement} */ (field).validationMessage });
    else if (session.step !== "busy") session.send(!session.isReady);
  };
  const press = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && session.leave();
  const [change] = plan && session.node ? differences(levelOf(hierarchy, node.level), session.node, drafted(hierarchy, draft)) : [];
  const problem = errors[attribute.name] ?? errors[""];
  return html`<form class="write-here" ref=${form} novalidate onSubmit=${submit} onKeyDown=${press} aria-busy=${session.step === "busy"}>
    <${AttributeField} attribute=${attribute} value=${draft.values[attribute.name]} error=${problem}
      onChange=${(/** @type {any} */ value) => session.change({ values: { ...draft.values, [attribute.name]: value } })} />
    <p class="quiet" role="status">${plan && change && html`<del>${change.before}</del> → <ins>${change.after}</ins>, about ${quantity(plan.writeUnits, "write unit")}.`}</p>
    <button type="submit" class="primary">${session.isUnknown ? "Send again" : session.isReady ? "Write" : "Preview"}</button>
    <button type="button" onClick=${() => session.leave()}>Cancel</button>
  </form>`;
}
