// The page: reads the address, shows the place that it names, and writes the address when another place is opened.
import { html, render, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { Api } from "./api.js";
import { Cost } from "./cost.js";
import { Credential } from "./credential.js";
import { HIERARCHIES } from "./documents.js";
import { follow } from "./live.js";
import { Family, Model, sentence } from "./model.js";
import { HierarchyView, NodeView } from "./node_view.js";
import { Search } from "./search.js";
import { Tree } from "./tree.js";
import { addressOf, fieldWords, placeOf } from "./words.js";
import { openMove } from "./writing.js";

/** @typedef {import("./model").Row} Row */
/** @typedef {import("./model").Order} Order */
/** @typedef {{hierarchy: string, path: string}} Place */

const LIVE_PAUSE_MS = 300; // many changes that come together are read once
const MISSING_CREDENTIAL = "UNAUTHENTICATED";

/** A number that changes at each call of the function beside it, so that the page is shown again. @returns {[number, () => void]} */
function useVersion() {
  const [version, setVersion] = useState(0);
  return [version, useMemo(() => () => setVersion((/** @type {number} */ old) => old + 1), [])];
}

/** The place that the address names. @param {Api} api @returns {Place} */
function usePlace(api) {
  const [place, setPlace] = useState(placeOf(location.hash));
  useEffect(() => {
    const begin = (/** @type {Event} */ event) => {
      const isAboutCost = event.target instanceof Element && event.target.closest("footer");
      if (!isAboutCost) api.begin();
    };
    const follow = (/** @type {Event} */ event) => {
      begin(event);
      setPlace(placeOf(location.hash));
    };
    addEventListener("hashchange", follow);
    addEventListener("click", begin, true);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("click", begin, true);
    };
  }, []);
  return place;
}

/** @param {{graphiql: string}} props */
function Explorer({ graphiql }) {
  const [version, changed] = useVersion();
  const api = useMemo(() => new Api("graphql", changed), []);
  const place = usePlace(api);
  const [error, setError] = useState("");
  const [isKeyNeeded, setKeyNeeded] = useState(false);

  const start = async () => {
    setError("");
    setKeyNeeded(false);
    api.begin();
    try {
      api.hierarchies = (await api.ask(HIERARCHIES)).data.hierarchies;
      if (!api.hierarchies.length) setError("Nothing here may be read with this key; use another one.");
    } catch (failure) {
      api.hierarchies = [];
      setKeyNeeded(/** @type {any} */ (failure).code === MISSING_CREDENTIAL);
      setError(sentence(failure));
    }
    changed();
  };
  useEffect(() => void start(), []);

  const hierarchy = api.hierarchies.find(({ name }) => name === place.hierarchy) ?? api.hierarchies[0];
  const model = useMemo(() => (hierarchy ? new Model(api, hierarchy, changed) : null), [hierarchy]);
  const open = (/** @type {string} */ path) => {
    if (hierarchy) location.hash = addressOf(hierarchy.name, path);
  };
  const use = (/** @type {string} */ credential) => {
    api.credential = credential;
    start();
  };
  const isUnknown = place.hierarchy && hierarchy && hierarchy.name !== place.hierarchy;
  return html`
    <header class="top">
      <a class="brand" href="#">Clade</a>
      <nav class="hierarchies" aria-label="Hierarchies">${api.hierarchies.map(({ name, listField }) => html`<a
        key=${name} href=${addressOf(name)} aria-current=${name === hierarchy?.name ? "true" : undefined}>${listField}</a>`)}
      </nav>
      ${model?.documents.search ? html`<${Search} model=${model} path=${place.path} onOpen=${open} />` : html`<span class="search"></span>`}
      <${Credential} credential=${api.credential} isNeeded=${isKeyNeeded} onUse=${use} />
    </header>
    ${error && html`<main class="alone"><p class="error" role="alert">${error}</p> <button onClick=${start}>Try again</button></main>`}
    ${!error && model && html`<${Browser} key=${hierarchy.name}
      model=${model} version=${version} path=${isUnknown ? "" : place.path} onOpen=${open}
      unknown=${isUnknown ? place.hierarchy.toLowerCase() : ""}
    />`}
    ${!error && !model && html`<main class="alone"><p class="quiet">Loading…</p></main>`}
    <${Cost} calls=${api.calls} graphiql=${graphiql} />`;
}

/**
 * The tree, and beside it the node at a path or the start of the hierarchy.
 * @param {{model: Model, version: number, path: string, unknown: string, onOpen: (path: string) => void}} props
 */
function Browser({ model, version, path, unknown, onOpen }) {
  const [node, setNode] = useState(/** @type {Row | null} */ (null));
  const [notice, setNotice] = useState("");
  const [error, setError] = useState("");
  const [sorted, setSorted] = useState(/** @type {Family | null} */ (null));
  const [isTreeOpen, setTreeOpen] = useState(false);
  const turn = useRef(0);
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));

  const load = async () => {
    const mine = ++turn.current;
    setError("");
    try {
      const found = path ? await model.node(path) : null;
      if (mine !== turn.current) return;
      if (path && !found) setError(`Nothing is at ${path}, or you may not see it.`);
      else if (found && found.path !== path) {
        setNotice(`${path} is a former path of this node, which is now at ${found.path}.`);
        history.replaceState(null, "", addressOf(model.hierarchy.name, found.path));
      }
      setNode(found);
      if (found) model.reveal(found);
      else model.load(model.family(""));
    } catch (failure) {
      if (mine !== turn.current) return;
      setNode(null);
      setError(sentence(failure));
    }
  };
  useEffect(() => {
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
    if (to === path) await load();
    else onOpen(to ?? "");
  };
  useLive(model, (node?.path ?? path).split("/")[0], () => refresh().then(load));
  const move = async (/** @type {string} */ from, /** @type {string} */ to) => {
    const moved = await openMove({ api: model.api, hierarchy: model.hierarchy, path: from, to });
    if (moved !== undefined) await done(moved);
  };
  const common = { model, version, onOpen, onOrder: order, onDone: done, family: sorted ?? model.family(node?.path ?? "") };
  const isLoading = path && !error && !node;
  return html`<main class=${`browser${isTreeOpen ? " tree-open" : ""}`}>
    <button class="tree-button" aria-expanded=${String(isTreeOpen)} onClick=${() => setTreeOpen(!isTreeOpen)}>
      ${isTreeOpen ? "Hide the tree" : "Show the tree"}
    </button>
    <div class="side">
      <h1>${fieldWords(model.hierarchy.listField)}</h1>
      <${Tree} model=${model} version=${version} selected=${node?.path ?? ""} isOpen=${isTreeOpen} onOpen=${onOpen}
        onMove=${model.hierarchy.mayWrite ? move : null} />
    </div>
    <div class="content" ref=${scroller} tabindex="-1">
      ${notice && html`<p class="notice" role="status">${notice}</p>`}
      ${error && html`<p class="error" role="alert">${error} <button onClick=${load}>Try again</button></p>`}
      ${isLoading && html`<p class="quiet">Loading…</p>`}
      ${node ? html`<${NodeView} ...${common} node=${node} />` : !path && html`<${HierarchyView} ...${common} />`}
    </div>
  </main>`;
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
