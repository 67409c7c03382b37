// The page: reads the address, shows the place that it names, and writes the address when another place is opened.
import { html, render, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { Cost } from "./cost.js";
import { Credential } from "./credential.js";
import { follow } from "./live.js";
import { DELETED } from "./documents.js";
import { time } from "./format.js";
import { sentence } from "./model.js";
import { HierarchyView, NodeView } from "./node_view.js";
import { Icon, State } from "./parts.js";
import { noteOpened, Search } from "./picker.js";
import { session } from "./session.js";
import { Edge, Tree } from "./tree.js";
import { listKey, queryOf, viewOf } from "./view.js";
import { useKeptScroll } from "./windowing.js";
import { addressOf, fieldWords, parentOf, placeOf, treeOf } from "./words.js";
import { openWrite } from "./writing.js";
/** @import { Model, Row } from "./model" */
/** @import { LiveState } from "./live" */
/** @import { Hit } from "./picker" */
/** @import { View } from "./view" */
/** @import { Options, Written } from "./write_session" */

const LIVE_PAUSE_MS = 300; // many changes that come together are read once
const LIVE_WORDS = {
  live: "Live: changes of others appear at once", reconnecting: "Reconnecting: changes of others appear when the server can be reached",
  offline: "Not live: reload to see changes of others",
};

/** The place that the address names. @returns {ReturnType<typeof placeOf>} */
function usePlace() {
  const [place, setPlace] = useState(placeOf(location.hash));
  useEffect(() => {
    const begin = (/** @type {Event} */ event) => {
      const isAboutCost = event.target instanceof Element && event.target.closest("footer");
      if (!isAboutCost) session.api.begin();
    };
    const go = (/** @type {Event} */ event) => {
      begin(event);
      setPlace(placeOf(location.hash));
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
      ${model && hierarchies.some((one) => one.searchField) ? html`<${Search} model=${model} hierarchies=${hierarchies} path=${place.path}
        onOpen=${(/** @type {Hit} */ hit) => (location.hash = addressOf(hit.hierarchy, hit.path))} />` : html`<span class="search"></span>`}
      <${Credential} credential=${api.credential} refusals=${api.refusals} onUse=${use} />
    </header>
    ${error && html`<main class="alone"><${State} kind="failed" onAction=${() => session.start()}>${error}<//></main>`}
    ${!error && model && html`<${Browser} key=${name}
      model=${model} path=${isUnknown ? "" : place.path} query=${place.query} graphiql=${graphiql} onOpen=${open}
      unknown=${isUnknown ? place.hierarchy.toLowerCase() : ""}
    />`}
    ${!error && !model && html`<main class="alone"><${State} kind="loading" /></main>`}
    <${Cost} calls=${api.calls} graphiql=${graphiql} />`;
}

/**
 * The tree, and beside it the node at a path or the start of the hierarchy.
 * @param {{model: Model, path: string, query: string, graphiql: string, unknown: string, onOpen: (path: string) => void}} props
 */
function Browser({ model, path, query, graphiql, unknown, onOpen }) {
  // The node of the path that was loaded last: another than `path` while that is loading.
  const [shown, setShown] = useState(/** @type {{path: string, node: Row | null}} */ ({ path: "", node: null }));
  const [notice, setNotice] = useState("");
  const [error, setError] = useState("");
  const [gone, setGone] = useState(/** @type {{text: string, undo?: () => unknown} | null} */ (null));
  const [live, setLive] = useState(/** @type {LiveState} */ (""));
  const [isTreeOpen, setTreeOpen] = useState(false);
  const [width, setWidth] = useState(336);
  const [toast, setToast] = useState(/** @type {Written | null} */ (null));
  const turn = useRef(0);
  const { node } = shown;
  const isFormer = shown.path !== path;
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));

  const load = async () => {
    const mine = ++turn.current;
    try {
      const found = await model.open(path);
      const absent = path && !found ? await absence(model, path, isFormer ? null : node) : null;
      if (mine !== turn.current) return;
      setError("");
      setGone(absent);
      if (found && found.path !== path) {
        setNotice(`${path} is a former path of this node, which is now at ${found.path}.`);
        history.replaceState(null, "", addressOf(model.hierarchy.name, found.path, query));
      }
      if (found) noteOpened(model.hierarchy.name, found);
      setShown({ path, node: found });
    } catch (failure) {
      if (mine !== turn.current) return;
      setShown((old) => (old.path === path ? old : { path, node: null }));
      setError(sentence(failure));
    }
  };
  useEffect(() => {
    setError("");
    setGone(null);
    setNotice(unknown && `There is no hierarchy ${unknown} that you may read.`);
    setTreeOpen(false);
    setToast((old) => (old?.path === (path || null) ? old : null));
    load();
  }, [model, path, unknown]);
  useEffect(() => {
    document.title = `${node?.name ?? model.hierarchy.title} · Clade`;
  }, [node, model]);

  const view = useMemo(() => viewOf(query), [query]);
  const setView = (/** @type {View} */ to) => {
    // The page stays where it is, and the list too where only its columns change.
    const kept = listKey(to) === listKey(view) ? history.state : { content: scroller.current?.scrollTop };
    history.pushState(kept, "", addressOf(model.hierarchy.name, path, queryOf(to)));
    dispatchEvent(new Event("hashchange"));
  };
  const done = async (/** @type {Written} */ written) => {
    setToast(written.said ? written : null);
    await model.refresh();
    if ((written.path ?? "") === path) await load();
    else onOpen(written.path ?? "");
  };
  useLive(model, treeOf(node?.path ?? path), () => model.refresh().then(load), setLive);
  const write = async (/** @type {() => Options | Promise<Options>} */ options) => {
    try {
      const written = await openWrite(await options());
      if (written) await done(written);
    } catch (failure) {
      setNotice(sentence(failure));
    }
  };
  const { api, hierarchy } = model;
  const move = (/** @type {string} */ from, /** @type {import("./forms").Draft} */ draft) => write(() => ({ api, hierarchy, verb: "move", path: from, draft }));
  const family = isFormer ? model.family(node?.path ?? "") : model.list(node?.path ?? "", view);
  useKeptScroll(scroller, "content", shown, !isFormer && (family.rows.length > 0 || !family.hasMore));
  const common = { model, view, graphiql, family, onOpen, onView: setView, onDone: done };
  const isLoading = isFormer && !node;
  const parent = parentOf(path);
  return html`<main class=${`browser${isTreeOpen ? " tree-open" : ""}`} style=${{ "--tree": `${width}px` }}>
    <button class="tree-button" aria-expanded=${String(isTreeOpen)} onClick=${() => setTreeOpen(!isTreeOpen)}>
      ${isTreeOpen ? "Hide the tree" : "Show the tree"}
    </button>
    <div class="side">
      <h1>${fieldWords(model.hierarchy.listField)}</h1>
      <div class="bar" hidden=${!live && !model.expanded.size}><${Live} state=${live} />
        <button type="button" disabled=${!model.expanded.size} onClick=${() => model.collapse()}><${Icon} name="collapse" />Collapse all</button></div>
      <${Tree} model=${model} selected=${node?.path ?? ""} isOpen=${isTreeOpen} onOpen=${onOpen}
        onMove=${model.hierarchy.mayWrite ? move : null} />
      <${Edge} width=${width} onWidth=${setWidth} />
    </div>
    <div class="content" ref=${scroller} tabindex="-1">
      ${notice && html`<${State} kind="moved">${notice}<//>`}
      ${error && html`<${State} kind="failed" onAction=${load}>${error}<//>`}
      ${gone && html`<${State} kind="gone" action="Go to ${parent || fieldWords(hierarchy.listField)}" href=${addressOf(hierarchy.name, parent)}>
        ${gone.text} ${gone.undo && html`<button type="button" onClick=${() => write(/** @type {any} */ (gone.undo))}>Undo…</button>`}<//>`}
      ${isLoading && html`<${State} kind="loading" />`}
      <div class=${isFormer ? "former" : ""} inert=${isFormer}>
        ${node ? html`<${NodeView} ...${common} node=${node} />` : !path && html`<${HierarchyView} ...${common} />`}
      </div>
    </div>
    ${toast && html`<div class="toast" role="status"><span>${toast.said}</span>
      ${toast.undo && html`<button type="button" onClick=${() => write(() => /** @type {Options} */ (toast.undo))}>Undo…</button>`}
      <button type="button" aria-label="Close" onClick=${() => setToast(null)}><${Icon} name="none" /></button></div>`}
  </main>`;
}

/**
 * Why nothing is at a path, as a sentence; of a node that was shown there the server knows who deleted it, and what it was.
 * @param {Model} model @param {string} path @param {Row | null} old @returns {Promise<{text: string, undo?: () => unknown}>}
 */
async function absence({ api, hierarchy }, path, old) {
  const found = old?.id && (await api.ask(DELETED, { id: old.id }).catch(() => null))?.data.deletedNode;
  if (!old || !found) return { text: `Nothing is at ${path}, or you may not see it.` };
  const text = `${path} was deleted${found.deletedBy ? ` by ${found.deletedBy}` : ""} on ${time(found.deletedAt)}.`;
  const undo = async () => (await import("./write_session.js")).creatingAgain(api, hierarchy, old);
  return { text, ...(hierarchy.mayWrite && { undo }) };
}

/** A dot that says whether changes of others come at once. @param {{state: LiveState}} props */
const Live = ({ state }) => state && html`<p class="live ${state}" role="status" title=${LIVE_WORDS[state]}>${LIVE_WORDS[state].split(":")[0]}</p>`;

/**
 * Call `onChange` soon after others have changed a tree.
 * @param {Model} model @param {string} tree @param {() => unknown} onChange @param {(state: LiveState) => void} onState
 */
function useLive(model, tree, onChange, onState) {
  const call = useRef(onChange);
  call.current = onChange;
  useEffect(() => {
    onState("");
    if (!tree) return undefined;
    const end = new AbortController();
    let timer = 0;
    const soon = () => {
      model.api.begin();
      clearTimeout(timer);
      timer = setTimeout(() => call.current(), LIVE_PAUSE_MS);
    };
    follow(model.api, model.hierarchy.name, tree, soon, end.signal, (state) => !end.signal.aborted && onState(state));
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [model, tree]);
}

const root = /** @type {HTMLElement} */ (document.getElementById("explorer"));
root.textContent = "";
render(html`<${Explorer} graphiql=${root.dataset.graphiql ?? ""} />`, root);
