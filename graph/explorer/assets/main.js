// The page: reads the address, shows the place that it names, and writes the address when another place is opened. On top
// are the hierarchies, the search and the key, at the bottom what the last click cost.
import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { sentence } from "./api.js";
import { focusHeading, isLost, keepFocus } from "./focus.js";
import { addressOf, deletedNodes, isFiltered, parentOf, placeOf, treeOf, uniqueOf } from "./hierarchy.js";
import { HierarchyView, NodeView, openWrite } from "./node_view.js";
import { Search } from "./search.js";
import { Family, session } from "./session.js";
import { Tree } from "./tree.js";
import { fieldWords, quantity, time } from "./words.js";
/** @import { Call, StoreCall } from "./api" */
/** @import { View } from "./hierarchy" */
/** @import { Model, Row } from "./session" */
/** @import { Options } from "./write_dialog" */
/** @typedef {{said: string, id?: string}} Absence */

const LIVE_PAUSE_MS = 300; // many changes that come together are read once

/** @param {{graphiql: string}} props */
function Explorer({ graphiql }) {
  const [, setVersion] = useState(0);
  session.onChange = () => setVersion((old) => old + 1);
  const place = usePlace();
  const { api, error, hierarchies } = session;
  const model = session.model(place.hierarchy);
  const name = model?.hierarchy.name;
  const isUnknown = place.hierarchy && name !== place.hierarchy;
  const open = (/** @type {string} */ path) => {
    if (name) location.hash = addressOf(name, path);
  };
  const use = (/** @type {string} */ credential) => {
    api.credential = credential;
    session.start();
  };
  return html`
    <header class="top">
      <a class="brand" href="#">Clade</a>
      <nav class="hierarchies" aria-label="Hierarchies">${hierarchies.map((one) => html`<a key=${one.name}
        href=${addressOf(one.name)} aria-current=${one.name === name ? "true" : undefined}>${one.listField}</a>`)}
      </nav>
      ${model && (model.documents.search || uniqueOf(model.hierarchy).length) ? html`<${Search} model=${model} path=${place.path} onOpen=${open} />` : html`<span class="search"></span>`}
      <${Credential} credential=${api.credential} refusals=${api.refusals} onUse=${use} />
    </header>
    ${error && html`<main class="alone"><p class="error" role="alert">${error}</p> <button onClick=${() => session.start()}>Try again</button></main>`}
    ${!error && model && html`<${Browser} key=${name}
      model=${model} path=${isUnknown ? "" : place.path} steps=${place.steps} onOpen=${open}
      unknown=${isUnknown ? place.hierarchy.toLowerCase() : ""}
    />`}
    ${!error && !model && html`<main class="alone"><p class="quiet">Loading…</p></main>`}
    <${Cost} calls=${api.calls} graphiql=${graphiql} />`;
}

/** The place that the address names, and how often it has changed. @returns {{hierarchy: string, path: string, steps: number}} */
function usePlace() {
  const [place, setPlace] = useState({ ...placeOf(location.hash), steps: 0 });
  useEffect(() => {
    const begin = (/** @type {Event} */ event) => {
      const isAboutCost = event.target instanceof Element && event.target.closest("footer");
      if (!isAboutCost) session.api.begin();
    };
    const go = (/** @type {Event} */ event) => {
      begin(event);
      setPlace(({ steps }) => ({ ...placeOf(location.hash), steps: steps + 1 }));
    };
    addEventListener("hashchange", go);
    addEventListener("click", begin, true);
    return () => {
      removeEventListener("hashchange", go);
      removeEventListener("click", begin, true);
    };
  }, []);
  return place;
}

/**
 * The tree, and beside it the node at a path or the start of the hierarchy.
 * @param {{model: Model, path: string, steps: number, unknown: string, onOpen: (path: string) => void}} props
 */
function Browser({ model, path, steps, unknown, onOpen }) {
  // The node of the path that was loaded last: another than `path` while that is loading.
  const [shown, setShown] = useState(/** @type {{path: string, node: Row | null}} */ ({ path: "", node: null }));
  const [notice, setNotice] = useState("");
  const [error, setError] = useState("");
  const [missing, setMissing] = useState(/** @type {Absence | null} */ (null));
  const [viewed, setViewed] = useState(/** @type {Family | null} */ (null));
  const [isTreeOpen, setTreeOpen] = useState(false);
  const turn = useRef(0);
  const { node } = shown;
  const isFormer = shown.path !== path;
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));

  const load = async () => {
    const mine = ++turn.current;
    try {
      const found = await model.open(path);
      const absent = path && !found ? await absence(model, path) : null;
      if (mine !== turn.current) return;
      setError(absent?.said ?? "");
      setMissing(absent);
      if (found && found.path !== path) {
        setNotice(`${path} is a former path of this node, which is now at ${found.path}.`);
        history.replaceState(null, "", addressOf(model.hierarchy.name, found.path));
      }
      setShown({ path, node: found });
    } catch (failure) {
      if (mine !== turn.current) return;
      setShown((old) => (old.path === path ? old : { path, node: null }));
      setError(sentence(failure));
    }
  };
  // After a wait the path may be another one: the function of an earlier render would load the node that was left.
  const newest = useRef(load);
  newest.current = load;
  const reload = () => newest.current();
  useEffect(() => {
    setError("");
    setMissing(null);
    setNotice(unknown && `There is no hierarchy ${unknown} that you may read.`);
    setViewed(null);
    setTreeOpen(false);
    scroller.current?.scrollTo(0, 0);
    load();
  }, [model, path, unknown]);
  useArrival(scroller, steps, isFormer || Boolean(error && path && !node));
  useEffect(() => {
    document.title = `${node?.name ?? model.hierarchy.title} · Clade`;
  }, [node, model]);

  const family = viewed ?? model.family(node?.path ?? "");
  const show = (/** @type {View} */ view) => {
    const isPlain = !view.order && !view.isDeep && !isFiltered(view);
    setViewed(isPlain ? null : new Family(node?.path ?? "", view, family.shown));
  };
  const refresh = async () => {
    await model.refresh();
    setViewed((/** @type {Family | null} */ old) => old && new Family(old.path, old.view, old.shown));
  };
  const done = async (/** @type {string | null} */ to) => {
    await refresh();
    if (to === path) await reload();
    else onOpen(model.orRoots(to ?? ""));
  };
  useLive(model, treeOf(node?.path ?? path), () => refresh().then(reload));
  const write = async (/** @type {Pick<Options, "verb" | "path" | "draft" | "id">} */ options) => {
    try {
      const to = await openWrite({ api: model.api, hierarchy: model.hierarchy, ...options });
      if (to !== undefined) await done(to);
    } catch (failure) {
      setNotice(sentence(failure));
    }
  };
  const move = (/** @type {string} */ from, /** @type {string} */ to) => write({ verb: "move", path: from, draft: { to } });
  const common = { model, onOpen, onView: show, onDone: done, family };
  const isLoading = isFormer && !node;
  const parent = model.orRoots(parentOf(path));
  return html`<main class=${`browser${isTreeOpen ? " tree-open" : ""}`}>
    <button class="tree-button" aria-expanded=${String(isTreeOpen)} onClick=${() => setTreeOpen(!isTreeOpen)}>
      ${isTreeOpen ? "Hide the tree" : "Show the tree"}
    </button>
    <div class="side">
      <h1>${fieldWords(model.hierarchy.listField)}</h1>
      <${Tree} model=${model} selected=${node?.path ?? ""} isOpen=${isTreeOpen} onOpen=${onOpen}
        onMove=${model.hierarchy.mayWrite ? move : null} />
    </div>
    <div class="content" ref=${scroller} tabindex="-1">
      ${notice && html`<p class="notice" role="status">${notice}</p>`}
      ${error && html`<p class="error" role="alert">${error}
        ${missing && html` <a href=${addressOf(model.hierarchy.name, parent)}>Go to ${parent || fieldWords(model.hierarchy.listField)}</a>`}
        ${missing?.id && model.hierarchy.mayWrite && html` <button onClick=${() => write({ verb: "restore", path, id: missing.id })}>Restore…</button>`}
        ${" "}<button onClick=${load}>Try again</button></p>`}
      ${isLoading && html`<p class="quiet">Loading…</p>`}
      <div class=${isFormer ? "former" : ""} inert=${isFormer}>
        ${node ? html`<${NodeView} ...${common} node=${node} />` : !path && html`<${HierarchyView} ...${common} />`}
      </div>
    </div>
  </main>`;
}

/**
 * The focus goes to the heading of each place that is opened, unless it is in the tree, whose keys lead on, or was taken
 * elsewhere meanwhile. At 0 `steps` the page was opened with its place.
 * @param {{current: HTMLElement | null}} content @param {number} steps @param {boolean} isLoading - also where it failed, since it may be tried again
 */
function useArrival(content, steps, isLoading) {
  const isOnTheWay = useRef(false);
  useEffect(() => {
    isOnTheWay.current = steps > 0;
    if (steps && !document.activeElement?.closest(".tree")) content.current?.focus({ preventScroll: true });
  }, [steps]);
  useEffect(() => {
    if (isLoading || !isOnTheWay.current || !content.current) return;
    isOnTheWay.current = false;
    if (isLost() || content.current.contains(document.activeElement)) focusHeading(content.current);
  }, [steps, isLoading]);
}

/**
 * Why nothing is at a path, as a sentence; of a node that was shown there the server knows who deleted it.
 * @param {Model} model @param {string} path @returns {Promise<Absence>} with the id of a deleted node
 */
async function absence(model, path) {
  const id = model.ids.get(path);
  const found = id && (await model.api.ask(deletedNodes(1), { id0: id }).catch(() => null))?.data.gone0;
  if (!found) return { said: `Nothing is at ${path}, or you may not see it.` };
  return { said: `${path} was deleted${found.deletedBy ? ` by ${found.deletedBy}` : ""} on ${time(found.deletedAt)}.`, id };
}

/** Call `onChange` soon after others have changed a tree. @param {Model} model @param {string} tree @param {() => unknown} onChange */
function useLive(model, tree, onChange) {
  const call = useRef(onChange);
  call.current = onChange;
  useEffect(() => {
    if (!tree) return undefined;
    const end = new AbortController();
    let timer = 0;
    const soon = () => {
      model.api.begin();
      clearTimeout(timer);
      timer = setTimeout(() => call.current(), LIVE_PAUSE_MS);
    };
    model.api.follow(model.hierarchy.name, tree, soon, end.signal);
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [model, tree]);
}

/**
 * The field for an API key or a token, which stays in memory: closing the page forgets it.
 * @param {{credential: string, refusals: number, onUse: (credential: string) => void}} props - it opens at each refusal
 */
function Credential({ credential, refusals, onUse }) {
  const [isOpen, setOpen] = useState(refusals > 0);
  const [text, setText] = useState(credential);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => setOpen(refusals > 0), [refusals]);
  useEffect(() => {
    if (isOpen) field.current?.focus();
  }, [isOpen]);
  const close = () => {
    button.current?.focus();
    setOpen(false);
  };
  const use = (/** @type {string} */ value) => {
    setText(value);
    close();
    onUse(value);
  };
  return html`<div class="credential">
    <button ref=${button} aria-expanded=${String(isOpen)} aria-controls="credential" onClick=${() => setOpen(!isOpen)}>
      ${credential ? "Key in use" : "Key"}
    </button>
    <div id="credential" class="popup panel" hidden=${!isOpen}
      onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === "Escape" && close()}>
      <label>API key or token
        <input
          ref=${field} type="password" autocomplete="off" spellcheck=${false} value=${text}
          onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === "Enter" && use(text.trim())}
          onInput=${(/** @type {InputEvent} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)}
        />
      </label>
      <p class="quiet">It stays in this page and is forgotten when you close it.</p>
      <button class="primary" onClick=${() => use(text.trim())}>Use it</button>
      ${credential && html` <button onClick=${() => use("")}>Forget it</button>`}
    </div>
  </div>`;
}

/**
 * The line at the bottom: what the last click cost, with the queries that were sent.
 * @param {{calls: Call[], graphiql: string}} props `graphiql` is its address, empty without it
 */
function Cost({ calls, graphiql }) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    const close = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      if (document.activeElement?.closest("#calls")) button.current?.focus();
      setOpen(false);
    };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, []);
  return html`<footer class="cost">
    ${isOpen && html`<div id="calls" class="calls" tabindex="0" role="region" aria-label="Queries of the last click">
      ${calls.map((call, place) => html`<${SentQuery} key=${place} call=${call} graphiql=${graphiql} />`)}
      ${!calls.length && html`<p class="quiet">Open a node first.</p>`}
    </div>`}
    <div class="bar">
      <span role="status">${costOf(calls)}</span>
      <button ref=${button} aria-expanded=${String(isOpen)} aria-controls="calls" onClick=${() => setOpen(!isOpen)}>
        ${isOpen ? "Hide the query" : "Show the query"}
      </button>
    </div>
  </footer>`;
}

/** @param {{call: Call, graphiql: string}} props */
function SentQuery({ call, graphiql }) {
  const { reads } = call;
  return html`<article>
    <div class="bar">
      <span class="quiet">${costOf([call])}</span>
      ${graphiql && html`<a class="button" href=${graphiqlAddress(graphiql, call)} target="_blank" rel="noopener">Open in GraphiQL</a>`}
    </div>
    ${reads?.calls?.length ? html`<ol class="reads">${reads.calls.map((read) => html`<li><${StoreRead} read=${read} /></li>`)}</ol>` : null}
    <pre><code>${call.document}</code></pre>
    <pre class="variables"><code>${JSON.stringify(call.variables)}</code></pre>
  </article>`;
}

/** @param {{read: StoreCall}} props */
function StoreRead({ read }) {
  const condition = read.keyCondition ?? [...(read.keys ?? []).slice(0, 2), read.keys && read.keys.length > 2 ? "…" : ""].join(" ");
  return html`<strong>${read.operation}</strong> of ${read.index}: ${quantity(read.items, "item")}, ${quantity(read.units, "unit")} <code>${condition}</code>`;
}

/** The address of GraphiQL with this query; after the "#" it is sent to no server. @param {string} graphiql @param {Call} call */
function graphiqlAddress(graphiql, { document, variables }) {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== null));
  return `${graphiql}#${new URLSearchParams({ query: document, variables: JSON.stringify(given, null, 2) })}`;
}

/** What some calls cost, as a sentence. @param {Call[]} calls */
function costOf(calls) {
  if (!calls.length) return "Nothing was read yet.";
  const milliseconds = Math.max(1, Math.round(Math.max(...calls.map((call) => call.ended)) - Math.min(...calls.map((call) => call.begun))));
  const sent = `${quantity(calls.length, "query")} in ${milliseconds} ms`;
  const reads = calls.flatMap((call) => call.reads ?? []);
  if (!reads.length) return `${sent}.`;
  const units = sum(reads.map((one) => one.units));
  const requests = sum(reads.map((one) => one.requests));
  if (!requests) return `${sent}: nothing had to be read.`;
  const items = sum(reads.map((one) => one.items));
  return `${sent}: ${quantity(requests, "read")} of the store, ${quantity(items, "item")}, ${quantity(Math.round(units * 10) / 10, "read unit")}.`;
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);

const root = /** @type {HTMLElement} */ (document.getElementById("explorer"));
root.textContent = "";
keepFocus();
render(html`<${Explorer} graphiql=${root.dataset.graphiql ?? ""} />`, root);
