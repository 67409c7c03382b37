// Dialog of a mutation: its form and preview, conflicts with what somebody else wrote, and the progress of large moves.
import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { levelOf } from "./documents.js";
import { PROGRESS } from "./documents_writing.js";
import { drafted } from "./forms.js";
import { differences, NONE } from "./values.js";
import { number, quantity } from "./format.js";
import { above, WriteSession } from "./write_session.js";
/** @import { Move } from "./documents_writing" */
/** @import { Difference } from "./values" */
/** @import { Options, Written } from "./write_session" */
/** @typedef {{session: WriteSession}} Props */

const POLL_MILLISECONDS = 1000;

/** Opens a dialog, as `openWrite` says. @param {Options} options @returns {Promise<Written | undefined>} */
export function openDialog(options) {
  const host = document.body.appendChild(document.createElement("div"));
  return new Promise((resolve) => {
    const close = (/** @type {any} */ result) => {
      host.querySelector("dialog")?.close(); // gives the focus back
      render(null, host);
      host.remove();
      resolve(result);
    };
    render(html`<${WriteDialog} options=${options} onClose=${close} />`, host);
  });
}

/** @param {{options: Options, onClose: (result: any) => void}} props */
function WriteDialog({ options, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [, redraw] = useState(0);
  const [session] = useState(() => new WriteSession(options, () => redraw((old) => old + 1), onClose));
  useEffect(() => {
    dialog.current?.showModal();
    session.start();
  }, []);
  const Step = { reading: Reading, form: Editing, busy: Editing, conflict: Conflict, moving: Progress }[session.step];
  const find = (/** @type {string} */ selector) => /** @type {HTMLElement | null} */ (dialog.current?.querySelector(selector) ?? null);
  useEffect(() => find("form input, form select, .primary, button")?.focus(), [Step]);
  useEffect(() => find("[aria-invalid=true]")?.focus(), [session.errors]);
  useEffect(() => find(".write-plan")?.scrollIntoView({ block: "nearest" }), [session.plan]);
  const [isAsking, setAsking] = useState(false);
  const leave = () => (session.isTyped ? setAsking(true) : session.leave());
  const onCancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    leave();
  };
  // A browser may close a dialog at a second Escape, whatever its cancel event was answered.
  const onClosed = () => {
    if (session.step === "busy" || session.isTyped) dialog.current?.showModal();
    leave();
  };
  useEffect(() => {
    const place = location.href;
    const stay = () => {
      if (location.href === place) return;
      if (!session.isTyped && session.step !== "busy") return onClose(undefined);
      history.pushState(null, "", place); // the dialog stays with the node that it is about
      dispatchEvent(new Event("hashchange"));
      setAsking(session.isTyped);
    };
    addEventListener("hashchange", stay);
    return () => removeEventListener("hashchange", stay);
  }, []);
  useEffect(() => {
    if (isAsking) find(".write-ask .primary")?.focus();
  }, [isAsking]);
  return html`<dialog class="write" ref=${dialog} aria-labelledby="write-title" onCancel=${onCancel}
    onClose=${onClosed}>
    <h2 id="write-title">${session.form.title(options.rows ? quantity(options.rows.length, "node") : options.path ?? "")}</h2>
    ${isAsking && html`<div class="write-ask" role="alertdialog" aria-labelledby="write-ask"><p id="write-ask">Discard what you typed?</p>
      <button type="button" class="primary" onClick=${() => setAsking(false)}>Keep editing</button>
      <button type="button" onClick=${() => session.leave()}>Discard</button></div>`}
    <${Step} session=${session} />
  </dialog>`;
}

/** @param {Props} props */
const Reading = ({ session }) => html`<${Problem} session=${session} />
  <div class="write-buttons"><button type="button" onClick=${() => session.leave()}>Cancel</button></div>`;

/** @param {Props} props */
function Editing({ session }) {
  const { options, node, draft, errors, plan, isReady, isUnknown } = session;
  const isBusy = session.step === "busy";
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const fields = /** @type {HTMLInputElement[]} */ ([...event.currentTarget.elements].filter((one) => one.name));
    const wrong = fields.filter(({ name, validity }) => validity.badInput || (!validity.valid && session.isChecked(name)));
    if (wrong.length) session.refuse(Object.fromEntries(wrong.map((one) => [one.name, one.validationMessage])));
    else if (!isBusy) session.send(!isReady);
  };
  const action = isUnknown ? "Send again" : isReady ? session.form.action : "Preview";
  return html`<form onSubmit=${submit} novalidate aria-busy=${isBusy}>
    <${session.form.Fields} api=${options.api} hierarchy=${options.hierarchy} node=${node} rows=${options.rows} draft=${draft}
      errors=${errors} set=${(/** @type {any} */ part) => session.change(part)} />
    <div role="status">${plan && html`<${Forecast} session=${session} />`}</div>
    <${Problem} session=${session} />
    <div class="write-buttons">
      <button type="submit" class=${isReady && options.verb === "delete" ? "primary danger" : "primary"}>${action}</button>
      <button type="button" onClick=${() => session.leave()}>Cancel</button>
    </div>
  </form>`;
}

/** @param {Props} props */
const Problem = ({ session: { errors, isUnknown } }) => errors[""] && html`<p class="write-error" role="alert">${errors[""]}
  ${isUnknown ? " It is not certain whether this was written. Send it again: nothing is changed twice." : ""}</p>`;

/** What a mutation would change. @param {Props} props */
function Forecast({ session: { options: { hierarchy, verb, rows }, node, draft, plan } }) {
  if (!draft || !plan) return null;
  const below = node?.descendantCount ? quantity(node.descendantCount, "descendant") : "";
  const parent = draft.beside ? above(draft.beside) : draft.to;
  const to = verb === "rename" ? [above(node?.path ?? ""), draft.key] : [parent, node?.path.split("/").at(-1)];
  return html`<section class="write-plan">
    <h3>Preview</h3>
    ${verb === "create" && html`<p>${[node?.path, draft.key].filter(Boolean).join("/")} is created.</p>`}
    ${verb === "update" && node && html`<${Differences} rows=${differences(levelOf(hierarchy, node.level), node, drafted(hierarchy, draft))} />`}
    ${node && ["rename", "move"].includes(verb) && html`<p>${node.path} → ${to.filter(Boolean).join("/")}${draft.side && `, ${draft.side} ${draft.beside}`}${below && `, with ${below}`}</p>`}
    ${rows && html`<ul class="rows">${rows.map(({ path, key }) => html`<li key=${path}>${path}${verb === "move" && ` → ${[draft.to, key].filter(Boolean).join("/")}`}</li>`)}</ul>`}
    ${node && verb === "delete" && html`<p>${node.path} is deleted${below && draft.policy === "CASCADE" && `, with ${below}`}${below &&
      draft.policy === "REPARENT" && "; its children move up"}.</p>`}
    <p class="write-hint">${quantity(plan.nodes, "node")} in ${quantity(plan.transactions, "transaction")},
      about ${quantity(plan.writeUnits, "write unit")} of DynamoDB. Nothing is written yet.</p>
  </section>`;
}

/** A list of differences, old to new. @param {{rows: Difference[]}} props */
export const Differences = ({ rows }) => html`<dl class="differences">
  ${rows.map(({ label, before, after }) => html`<div key=${label}><dt>${label}</dt>
    <dd>${before === NONE ? before : html`<del>${before}</del>`} → <ins>${after}</ins></dd></div>`)}
</dl>`;

/** @param {Props} props */
export function Conflict({ session }) {
  const { node, theirs, draft, options: { hierarchy, verb } } = session;
  const [except, setExcept] = useState(/** @type {Set<string>} */ (new Set()));
  if (!node || !theirs || !draft) return null;
  const level = levelOf(hierarchy, node.level);
  const their = differences(level, node, theirs);
  const own = verb === "update" ? differences(level, node, drafted(hierarchy, draft)) : [];
  const fields = new Map([...their, ...own].map(({ label, field }) => [label, field]));
  const rows = [...fields].map(([label, field]) => ({
    label, field, they: their.find((row) => row.label === label), mine: own.find((row) => row.label === label),
  }));
  const choose = (/** @type {string} */ field, /** @type {boolean} */ isTheirs) =>
    setExcept(new Set([...[...except].filter((one) => one !== field), ...(isTheirs ? [field] : [])]));
  const option = (/** @type {(typeof rows)[number]} */ { label, field, they, mine }, /** @type {boolean} */ isTheirs) => {
    const text = (isTheirs ? they : mine)?.after ?? NONE;
    return they && mine ? html`<label><input type="radio" name=${`side of ${label}`} checked=${except.has(field) === isTheirs}
      onChange=${() => choose(field, isTheirs)} /> ${text}</label>` : text;
  };
  return html`<div role="alert">
      <p>${theirs.changedBy ?? "Somebody else"} wrote this node meanwhile.
        ${theirs.revision !== node.revision && ` It was at revision ${node.revision}, and is at revision ${theirs.revision} now.`}
        ${theirs.path !== node.path && ` It was at ${node.path}, and is at ${theirs.path} now.`}</p>
    </div>
    ${rows.length > 0 && html`<div class="write-scroll" tabindex="0" role="region" aria-label="Differences"><table class="write-conflict">
      <thead><tr><td></td><th scope="col">Before</th><th scope="col">Theirs</th><th scope="col">Mine</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.label}><th scope="row">${row.label}</th>
        <td>${(row.they ?? row.mine)?.before}</td><td>${option(row, true)}</td><td>${option(row, false)}</td></tr>`)}
      </tbody></table></div>`}
    <div class="write-buttons">
      <button type="button" class="primary" onClick=${() => session.onDone({ path: theirs.path, said: "", undo: null })}>Take theirs</button>
      <button type="button" onClick=${() => session.mineAgain(except)}>Write mine again</button>
    </div>`;
}

/** @param {Props} props */
function Progress({ session }) {
  const first = /** @type {Move} */ (session.move);
  const [move, setMove] = useState(first);
  useEffect(() => {
    const poll = async () => {
      const now = await session.options.api.ask(PROGRESS, { id: first.id }).then(({ data }) => data.move, () => ({ ...move }));
      if (now?.state === "UNDONE") session.undone(now);
      else if (!now || now.state === "DONE") session.finish(first.to);
      else setMove(now);
    };
    const timer = setTimeout(poll, POLL_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [move]);
  const words = move.state === "COPYING" ? "copied" : first.to ? "removed at the former place" : "removed";
  return html`<p id="write-progress">${number(move.written)} of ${quantity(move.nodes, "node")} ${words}.</p>
    <progress aria-labelledby="write-progress" max=${move.nodes} value=${move.written} />
    <p role="status">This is a large move; it continues in the background, also when this is closed.</p>
    <div class="write-buttons"><button type="button" onClick=${() => session.leave()}>Close</button></div>`;
}
