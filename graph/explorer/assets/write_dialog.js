/** Dialog of a mutation: its form, the dry run, conflicts with what somebody else wrote, and the progress of large moves. */

import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { content, levelOf, mutation, PROGRESS } from "./documents_writing.js";
import { draftOf, drafted, FieldError, FORMS, rebased } from "./forms.js";
import { differences, shown } from "./values.js";

/**
 * @typedef {import("./documents_writing.js").Api} Api
 * @typedef {import("./documents_writing.js").Hierarchy} Hierarchy
 * @typedef {import("./documents_writing.js").Content} Content
 * @typedef {import("./documents_writing.js").Move} Move
 * @typedef {import("./documents_writing.js").Plan} Plan
 * @typedef {import("./documents_writing.js").Verb} Verb
 * @typedef {import("./forms.js").Draft} Draft
 * @typedef {{api: Api, hierarchy: Hierarchy, verb: Verb, path: string | null, draft?: Draft}} Options - `path` is that of
 *   the node, or of a new node's parent; `draft` is what the fields begin with where that is not the node's content
 */

const POLL_MILLISECONDS = 1000;
const UNKNOWN = new Set(["UNAVAILABLE", "TIMEOUT", "INTERNAL_SERVER_ERROR"]);

/**
 * Opens the dialog. Resolves to the path to show next, null for the roots, or undefined where nothing was written.
 * @param {Options} options
 * @returns {Promise<string | null | undefined>}
 */
export function openWrite(options) {
  const host = document.body.appendChild(document.createElement("div"));
  return new Promise((resolve) => {
    const close = (/** @type {any} */ result) => {
      host.querySelector("dialog")?.close(); // gives the focus back
      render(null, host);
      host.remove();
      resolve(result);
    };
    render(html`<${WriteDialog} ...${options} onClose=${close} />`, host);
  });
}

/**
 * The content of a node with its attributes; null where there is none.
 * @param {Api} api
 * @param {Hierarchy} hierarchy
 * @param {{path: string} | {id: string}} where
 * @param {string} level - that the node probably has
 * @returns {Promise<Content | null>}
 */
async function read(api, hierarchy, where, level = hierarchy.levels[0].name) {
  const { data } = await api.ask(content(hierarchy, levelOf(hierarchy, level)), where);
  return !data.node || data.node.level === level ? data.node : read(api, hierarchy, where, data.node.level);
}

/** The path above a node; null for a root. @param {string} path */
const above = (path) => path.split("/").slice(0, -1).join("/") || null;

/** A key of idempotency: random, also where the page is not served by HTTPS. */
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");

/**
 * The error of a response, by the field of the form that it concerns; "" for the form itself.
 * @param {any} error
 * @param {string[]} fields
 */
function errorsOf(error, fields) {
  if (error instanceof FieldError) return { [error.field]: error.message };
  const words = new Set(String(error.message).match(/\w+/g));
  const snake = (/** @type {string} */ name) => name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  const named = fields.find((name) => words.has(name) || words.has(snake(name)));
  const taken = error.code === "ALREADY_EXISTS" || error.code === "BAD_PATH" ? fields.find((one) => one === "key" || one === "to") : "";
  const place = error.code === "MISPLACED" ? fields.find((one) => one === "to") : "";
  return { [taken || place || named || ""]: error.message };
}

/** @param {Options & {onClose: (result: any) => void}} props */
function WriteDialog({ api, hierarchy, verb, path, draft: given, onClose }) {
  const form = FORMS[verb];
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [node, setNode] = useState(/** @type {Content | null} */ (null));
  const [draft, setDraft] = useState(/** @type {Draft | null} */ (null));
  const [plan, setPlan] = useState(/** @type {Plan | null} */ (null));
  const [errors, setErrors] = useState(/** @type {Record<string, string>} */ ({}));
  const [theirs, setTheirs] = useState(/** @type {Content | null} */ (null));
  const [move, setMove] = useState(/** @type {Move | null} */ (null));
  const [step, setStep] = useState("reading"); // form, busy, conflict, moving, deleted
  const [key, setKey] = useState(newKey);
  const [isUnknown, setUnknown] = useState(false);

  const start = async () => {
    const found = path === null ? null : await read(api, hierarchy, { path });
    if (path !== null && !found) throw new Error(`There is no node at ${path} any more.`);
    const first = given ?? form.start({ hierarchy, node: found, draft: {} });
    setNode(found);
    setDraft(first);
    setStep("form");
    if (given) await send(true, found, first);
  };
  useEffect(() => {
    dialog.current?.showModal();
    start().catch((error) => setErrors({ "": error.message }));
  }, []);

  /** @param {boolean} dryRun @param {Content | null} of @param {Draft} as */
  const send = async (dryRun, of, as) => {
    setErrors({});
    setStep("busy");
    try {
      const variables = form.variables({ hierarchy, node: of, draft: as });
      if (verb === "update" && !Object.keys(variables).length) throw new Error("Nothing is changed yet.");
      const rest = verb === "create" ? {} : { path: of?.path, expectedRevision: of?.revision };
      const options = dryRun ? { dryRun } : { dryRun, idempotencyKey: key };
      const { data, errors: failed } = await api.ask(mutation(hierarchy, verb), { ...variables, ...rest, ...options });
      if (!data?.result) throw Object.assign(new Error(failed?.[0].message), { code: failed?.[0].extensions?.code });
      await answered(dryRun, data.result);
    } catch (error) {
      await failed(dryRun, of, as, error);
    }
  };

  /** @param {boolean} dryRun @param {any} result */
  const answered = async (dryRun, result) => {
    if (dryRun) {
      setPlan(result.plan);
      setStep("form");
    } else if (result.move && !result.move.endedAt && !["DONE", "UNDONE"].includes(result.move.state)) {
      setMove(result.move);
      setStep("moving");
    } else done(result.move?.to ?? result.node?.path);
  };

  /** @param {string | undefined} to */
  const done = (to) => (verb === "delete" ? setStep("deleted") : onClose(to ?? path));

  /** @param {boolean} dryRun @param {Content | null} of @param {Draft} as @param {any} error */
  const failed = async (dryRun, of, as, error) => {
    const isLost = !dryRun && !(error instanceof FieldError) && (!error.code || UNKNOWN.has(error.code));
    if (verb !== "create" && of && ["CONFLICT", "NOT_FOUND"].includes(error.code)) {
      const now = await read(api, hierarchy, { id: of.id }, of.level).catch(() => null);
      if (now && (now.revision !== of.revision || now.path !== of.path)) {
        setTheirs(now);
        return setStep("conflict");
      }
    }
    setUnknown(isLost);
    if (!isLost) setPlan(null);
    setErrors(errorsOf(error, [...Object.keys(as), ...Object.keys(as.values ?? {})]));
    setStep("form");
  };

  const change = (/** @type {Draft} */ part) => {
    setDraft((old) => ({ ...old, ...part }));
    setPlan(null);
    setUnknown(false);
    setErrors({});
    setKey(newKey());
  };
  const mineAgain = async () => {
    const now = /** @type {Content} */ (theirs);
    const mine = verb === "update" ? rebased(hierarchy, /** @type {Draft} */ (draft), /** @type {Content} */ (node), now) : draft;
    setNode(now);
    setDraft(mine);
    setPlan(null);
    setKey(newKey());
    await send(true, now, /** @type {Draft} */ (mine));
  };
  const undo = () => {
    const old = /** @type {Content} */ (node);
    const parent = above(old.path);
    const again = { ...draftOf(hierarchy, old), id: old.id, key: old.key };
    onClose(openWrite({ api, hierarchy, verb: "create", path: parent, draft: again }).then((to) => (to === undefined ? parent : to)));
  };
  const isBusy = step === "busy";
  const close = () => !isBusy && onClose(step === "deleted" && node ? above(node.path) : undefined);
  const isReady = plan && !plan.collisions.length;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!isBusy && draft) send(!(isReady || isUnknown), node, draft);
  };
  return html`<dialog class="write" ref=${dialog} aria-labelledby="write-title" aria-busy=${isBusy}
    onCancel=${(/** @type {Event} */ event) => (event.preventDefault(), close())}>
    <h2 id="write-title">${form.title(path ?? "")}</h2>
    ${["form", "busy"].includes(step) && draft && html`<form onSubmit=${submit} novalidate>
      <${form.Fields} api=${api} hierarchy=${hierarchy} node=${node} draft=${draft} errors=${errors} set=${change} />
      <div role="status">${plan && html`<${Forecast} ...${{ hierarchy, verb, node, draft, plan }} />`}</div>
      <${Problem} text=${errors[""]} isUnknown=${isUnknown} />
      <div class="write-buttons">
        <button type="submit" class="primary" aria-disabled=${isBusy}>${isUnknown ? "Send again" : isReady ? form.action : "Preview"}</button>
        <button type="button" onClick=${close}>Cancel</button>
      </div>
    </form>`}
    ${step === "reading" && html`<${Problem} text=${errors[""]} />
      <div class="write-buttons"><button type="button" onClick=${close}>Cancel</button></div>`}
    ${step === "conflict" && html`<${Conflict} ...${{ hierarchy, verb, node, theirs, draft }}
      onTheirs=${() => onClose(theirs?.path)} onMine=${mineAgain} />`}
    ${step === "moving" && html`<${Progress} api=${api} move=${move} onLeave=${() => onClose(path)}
      onDone=${(/** @type {Move} */ ended) => done(ended.to ?? undefined)} onUndone=${(/** @type {Move} */ ended) => {
        setPlan(null);
        setKey(newKey());
        setErrors({ "": `Nothing was changed. ${ended.reason ?? ""}` });
        setStep("form");
      }} />`}
    ${step === "deleted" && html`<p role="status">${node?.path} is deleted.
        ${node?.descendantCount && draft?.policy === "CASCADE" ? " Undo creates it again, but not what was below it." : ""}</p>
      <div class="write-buttons"><button type="button" class="primary" onClick=${close}>Close</button>
        <button type="button" onClick=${undo}>Undo</button></div>`}
  </dialog>`;
}

/** @param {{text?: string, isUnknown?: boolean}} props */
const Problem = ({ text, isUnknown }) => text && html`<p class="write-error" role="alert">${text}
  ${isUnknown ? " It is not known whether this was written. Sending it again is safe: nothing is changed twice." : ""}</p>`;

/** @param {number} number @param {string} one @param {string} many */
const counted = (number, one, many) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

/**
 * What a mutation would change.
 * @param {{hierarchy: Hierarchy, verb: Verb, node: Content | null, draft: Draft, plan: Plan}} props
 */
function Forecast({ hierarchy, verb, node, draft, plan }) {
  const below = node?.descendantCount ? counted(node.descendantCount, "descendant", "descendants") : "";
  const target = { rename: () => [above(node?.path ?? ""), draft.key], move: () => [draft.to, node?.key] }[/** @type {string} */ (verb)]?.();
  return html`<section class="write-plan">
    <h3>Preview</h3>
    ${verb === "update" && node && html`<${Differences} rows=${differences(levelOf(hierarchy, node.level), node, drafted(hierarchy, draft))} />`}
    ${target && html`<p>${node?.path} → ${target.filter(Boolean).join("/")}${below && `, with ${below}`}</p>`}
    ${verb === "delete" && below && html`<p>${node?.path} has ${below}${draft.policy === "CASCADE" ? ", which are deleted too" : ""}.</p>`}
    <p>${counted(plan.nodes, "node", "nodes")} in ${counted(plan.transactions, "transaction", "transactions")},
      about ${counted(plan.writeUnits, "write unit", "write units")} of DynamoDB. Nothing is written yet.</p>
    ${plan.collisions.length > 0 && html`<p class="write-error">Other nodes have these paths: ${plan.collisions.join(", ")}</p>`}
  </section>`;
}

/**
 * A table of differences, old to new.
 * @param {{rows: import("./values.js").Difference[]}} props
 */
export const Differences = ({ rows }) => html`<dl class="differences">
  ${rows.map(({ label, before, after }) => html`<div key=${label}><dt>${label}</dt>
    <dd><del>${before}</del> <span aria-label="becomes">→</span> <ins>${after}</ins></dd></div>`)}
</dl>`;

/** @param {any} props */
function Conflict({ hierarchy, verb, node, theirs, draft, onTheirs, onMine }) {
  const level = levelOf(hierarchy, node.level);
  const their = differences(level, node, theirs);
  const own = verb === "update" ? differences(level, node, drafted(hierarchy, draft)) : [];
  const labels = [...new Set([...their, ...own].map((row) => row.label))];
  const of = (/** @type {any[]} */ rows, /** @type {string} */ label) => rows.find((row) => row.label === label);
  return html`<div role="alert">
      <p>${theirs.changedBy ?? "Somebody else"} wrote this node meanwhile: it was revision ${node.revision}, and is ${theirs.revision} now.</p>
      ${theirs.path !== node.path && html`<p>It was at ${node.path}, and is at ${theirs.path} now.</p>`}
    </div>
    ${labels.length > 0 && html`<div class="write-scroll"><table class="write-conflict">
      <thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">Theirs</th><th scope="col">Mine</th></tr></thead>
      <tbody>${labels.map((label) => {
        const [they, mine] = [of(their, label), of(own, label)];
        const before = (they ?? mine).before;
        return html`<tr key=${label}><th scope="row">${label}</th><td>${before}</td>
          <td>${they ? they.after : before}</td><td>${mine ? mine.after : shown(null)}</td></tr>`;
      })}</tbody></table></div>`}
    <div class="write-buttons">
      <button type="button" class="primary" onClick=${onTheirs}>Take theirs</button>
      <button type="button" onClick=${onMine}>Write mine again</button>
    </div>`;
}

/** @param {{api: Api, move: Move, onDone: (move: Move) => void, onUndone: (move: Move) => void, onLeave: () => void}} props */
function Progress({ api, move: first, onDone, onUndone, onLeave }) {
  const [move, setMove] = useState(first);
  useEffect(() => {
    const poll = async () => {
      const now = await api.ask(PROGRESS, { id: first.id }).then(({ data }) => data.move, () => move);
      if (!now || now.state === "DONE") return onDone(now ?? first);
      if (now.state === "UNDONE") return onUndone(now);
      setMove({ ...now });
    };
    const timer = setTimeout(poll, POLL_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [move]);
  const words = move.state === "COPYING" ? "copied" : "removed at the former place";
  return html`<p id="write-progress" role="status">${move.written.toLocaleString()} of ${counted(move.nodes, "node", "nodes")} ${words}.</p>
    <progress aria-labelledby="write-progress" max=${move.nodes} value=${move.written} />
    <p>It continues in the background, also when this is closed.</p>
    <div class="write-buttons"><button type="button" onClick=${onLeave}>Close</button></div>`;
}
