// The page: reads the address, shows the place that it names, and writes the address when another place is opened.
import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { Cost } from "./cost.js";
import { Credential } from "./credential.js";
import { follow } from "./live.js";
import { DELETED } from "./documents.js";
import { time } from "./format.js";
import { Family, sentence } from "./model.js";
import { HierarchyView, NodeView } from "./node_view.js";
import { Search } from "./search.js";
import { session } from "./session.js";
import { Tree } from "./tree.js";
import { addressOf, fieldWords, parentOf, placeOf, treeOf } from "./words.js";
import { openWrite } from "./writing.js";
/** @import { Model, Order, Row } from "./model" */

const LIVE_PAUSE_MS = 300; // many changes that come together are read once

/** The place that the address names. @returns {{hierarchy: string, path: string}} */
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
      ${model?.documents.search ? html`<${Search} model=${model} path=${place.path} onOpen=${open} />` : html`<span class="search"></span>`}
      <${Credential} credential=${api.credential} refusals=${api.refusals} onUse=${use} />
    </header>
    ${error && html`<main class="alone"><p class="error" role="alert">${error}</p> <button onClick=${() => session.start()}>Try again</button></main>`}
    ${!error && model && html`<${Browser} key=${name}
      model=${model} path=${isUnknown ? "" : place.path} onOpen=${open}
      unknown=${isUnknown ? place.hierarchy.toLowerCase() : ""}
    />`}
    ${!error && !model && html`<main class="alone"><p class="quiet">Loading…</p></main>`}
    <${Cost} calls=${api.calls} graphiql=${graphiql} />`;
}

/**
 * The tree, and beside it the node at a path or the start of the hierarchy.
 * @param {{model: Model, path: string, unknown: string, onOpen: (path: string) => void}} props
 */
function Browser({ model, path, unknown, onOpen }) {
  // The node of the path that was loaded last: another than `path` while that is loading.
  const [shown, setShown] = useState(/** @type {{path: string, node: Row | null}} */ ({ path: "", node: null }));
  const [notice, setNotice] = useState("");
  const [error, setError] = useState("");
  const [isMissing, setMissing] = useState(false);
  const [sorted, setSorted] = useState(/** @type {Family | null} */ (null));
  const [isTreeOpen, setTreeOpen] = useState(false);
  const turn = useRef(0);
  const { node } = shown;
  const isFormer = shown.path !== path;
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));

  const load = async () => {
    const mine = ++turn.current;
    try {
      const found = await model.open(path);
      const problem = path && !found ? await absence(model, path, isFormer ? null : node) : "";
      if (mine !== turn.current) return;
      setError(problem);
      setMissing(Boolean(problem));
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
    setMissing(false);
    setNotice(unknown && `There is no hierarchy ${unknown} that you may read.`);
    setSorted(null);
    setTreeOpen(false);
    scroller.current?.scrollTo(0, 0);
    load();
  }, [model, path, unknown]);
  useEffect(() => {
    document.title = `${node?.name ?? model.hierarchy.title} · Clade`;
  }, [node, model]);

  const order = (/** @type {Order | null} */ by) => {
    setSorted(by && new Family(node?.path ?? "", by));
  };
  const refresh = async () => {
    await model.refresh();
    setSorted((/** @type {Family | null} */ old) => old && new Family(old.path, old.order));
  };
  const done = async (/** @type {string | null} */ to) => {
    await refresh();
    if (to === path) await reload();
    else onOpen(to ?? "");
  };
  useLive(model, treeOf(node?.path ?? path), () => refresh().then(reload));
  const move = async (/** @type {string} */ from, /** @type {string} */ to) => {
    try {
      const moved = await openWrite({ api: model.api, hierarchy: model.hierarchy, verb: "move", path: from, draft: { to } });
      if (moved !== undefined) await done(moved);
    } catch (failure) {
      setNotice(sentence(failure));
    }
  };
  const common = { model, onOpen, onOrder: order, onDone: done, family: sorted ?? model.family(node?.path ?? "") };
  const isLoading = isFormer && !node;
  const parent = parentOf(path);
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
        ${isMissing && html` <a href=${addressOf(model.hierarchy.name, parent)}>Go to ${parent || fieldWords(model.hierarchy.listField)}</a>`}
        ${" "}<button onClick=${load}>Try again</button></p>`}
      ${isLoading && html`<p class="quiet">Loading…</p>`}
      <div class=${isFormer ? "former" : ""} inert=${isFormer}>
        ${node ? html`<${NodeView} ...${common} node=${node} />` : !path && html`<${HierarchyView} ...${common} />`}
      </div>
    </div>
  </main>`;
}

/**
 * Why nothing is at a path, as a sentence; of a node that was shown there the server knows who deleted it.
 * @param {Model} model @param {string} path @param {Row | null} old
 */
async function absence(model, path, old) {
  const found = old?.id && (await model.api.ask(DELETED, { id: old.id }).catch(() => null))?.data.deletedNode;
  if (!found) return `Nothing is at ${path}, or you may not see it.`;
  return `${path} was deleted${found.deletedBy ? ` by ${found.deletedBy}` : ""} on ${time(found.deletedAt)}.`;
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
    follow(model.api, model.hierarchy.name, tree, soon, end.signal);
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [model, tree]);
}

const root = /** @type {HTMLElement} */ (document.getElementById("explorer"));
root.textContent = "";
render(html`<${Explorer} graphiql=${root.dataset.graphiql ?? ""} />`, root);
