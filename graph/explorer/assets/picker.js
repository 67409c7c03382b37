// Picker of nodes: a combobox that finds them by the beginnings of their words, by a path, or among those opened last.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { documents, HITS } from "./documents.js";
import { sentence } from "./model.js";
import { levelWord, treeOf } from "./words.js";
/** @import { Api, Hierarchy } from "./api" */
/** @import { Model } from "./model" */
/** A node that is proposed; `trail` names those above it. @typedef {{hierarchy: string, path: string, name: string, level: string, trail: string}} Hit */
/** @typedef {{hits: Hit[], said: string}} Found */
/** @typedef {{label: string, find: (text: string) => Promise<Found>, onPick: (hit: Hit) => void, onText?: (text: string) => void, as?: any,
 *   value?: string, isKept?: boolean, version?: unknown, own?: string, children?: unknown, [attribute: string]: unknown}} Props */

const PAUSE_MS = 150;
const MAX_CHARACTERS = 1000;
const MAX_RECENT = 8;
const MAX_CHILDREN = 20;
/** @type {Found} */
const NOTHING = { hits: [], said: "" };
// One character of a script without spaces is a word.
const UNSPACED = /[\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Han}]/u;

/** The nodes that were opened last, newest first; they stay in this page. @type {Hit[]} */
let recent = [];

/** Note that a node was opened. @param {string} hierarchy @param {any} node */
export function noteOpened(hierarchy, { path, name, level, ancestors }) {
  const hit = { hierarchy, path, name, level, trail: trailOf(ancestors) };
  recent = [hit, ...recent.filter((one) => one.hierarchy !== hierarchy || one.path !== path)].slice(0, MAX_RECENT);
}

/** @param {{name: string}[] | null} [ancestors] */
const trailOf = (ancestors) => (ancestors ?? []).map(({ name }) => name).join(" › ");

/**
 * The nodes of hierarchies that a text finds: with a slash the children of the first one whose keys begin with what
 * follows, else the words of each, of the first one below `under`. Throws ApiError.
 * @param {Api} api @param {Hierarchy[]} hierarchies @param {string} text @param {string} [under] @returns {Promise<Found>}
 */
export async function found(api, hierarchies, text, under = "") {
  const [first] = hierarchies;
  const hit = (/** @type {Hierarchy} */ one, /** @type {any} */ node) =>
    ({ hierarchy: one.name, path: node.path, name: node.name, level: node.level, trail: trailOf(node.ancestors) || node.path });
  if (!text) return { hits: recent.filter((one) => hierarchies.some(({ name }) => name === one.hierarchy)), said: "" };
  const end = text.lastIndexOf("/");
  if (end > 0 || !hierarchies.some(({ searchField }) => searchField)) {
    const startsWith = text.slice(end + 1).replaceAll(/%2F/gi, "/").replaceAll("%25", "%");
    const { children, roots } = documents(first);
    const variables = { first: MAX_CHILDREN, total: false, where: { key: { startsWith } }, orderBy: [{ field: "KEY" }] };
    const { data } = await (end > 0 ? api.ask(children, { path: text.slice(0, end), ...variables }) : api.ask(roots, variables));
    const nodes = (end > 0 ? data.node?.children : data.list)?.nodes ?? [];
    return { hits: nodes.map((/** @type {any} */ node) => hit(first, node)), said: nodes.length ? "" : `No key there begins with “${startsWith}”.` };
  }
  if ([...text].length < 2 && !UNSPACED.test(text)) return NOTHING;
  const searched = hierarchies.filter((one) => one.searchField && (!one.searchNeedsUnder || (one === first && under)));
  const answers = await Promise.all(searched.map(async (one) => {
    const variables = { text, under: (one === first && under) || null, first: HITS };
    const { nodes, complete } = (await api.ask(/** @type {string} */ (documents(one).search), variables)).data.found;
    return { hits: nodes.map((/** @type {any} */ node) => hit(one, { trail: "", ...node })), complete };
  }));
  const hits = answers.flatMap((one) => one.hits);
  const more = answers.every(({ complete }) => complete) ? "" : " There may be better ones: type on.";
  const where = under && searched.length === 1 ? ` below ${under}` : "";
  return { hits, said: hits.length ? `${hits.length} found.${more}` : `Nothing${where} has words that begin with “${text}”.` };
}

let pickers = 0;

/**
 * A combobox; all other properties are those of its input, which is `as`.
 * @param {Props} props - `find` is asked again when `version` changes; the path of the picked node stays with `isKept`; hits of another hierarchy than `own` name theirs
 */
export function Picker({ label, find, onPick, onText = () => {}, as = "input", value = "", isKept = false, version, own, children, ...rest }) {
  const [id] = useState(() => `picker-${++pickers}`);
  const [text, setText] = useState(value);
  const [isOpen, setOpen] = useState(false);
  const [{ hits, said }, setFound] = useState(NOTHING);
  const [active, setActive] = useState(-1);
  const latest = useRef(0);
  const close = () => {
    latest.current += 1;
    setOpen(false);
    setActive(-1);
  };
  useEffect(() => {
    if (!isOpen) return undefined;
    const turn = ++latest.current;
    const show = (/** @type {Found} */ answer) => {
      if (turn !== latest.current) return;
      setFound(answer);
      setActive(-1);
    };
    const timer = setTimeout(() => find(text.trim()).then(show, (error) => show({ hits: [], said: sentence(error) })), text ? PAUSE_MS : 0);
    return () => clearTimeout(timer);
  }, [text, isOpen, version]);
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!isOpen) return undefined;
    let isPressed = false; // then it closes after the click, so that nothing moves away below the pointer
    const leave = (/** @type {Event} */ event) => {
      const isLeft = event.type === "click" || (event.type === "focusin" && !isPressed);
      if (event.type !== "focusin") isPressed = event.type === "pointerdown";
      if (isLeft && !root.current?.contains(/** @type {Node} */ (event.target))) close();
    };
    const kinds = ["pointerdown", "click", "focusin"];
    kinds.forEach((kind) => addEventListener(kind, leave));
    return () => kinds.forEach((kind) => removeEventListener(kind, leave));
  }, [isOpen]);
  const type = (/** @type {string} */ to) => {
    setText(to);
    setOpen(true);
    onText(to);
  };
  const choose = (/** @type {Hit} */ hit) => {
    setText(isKept ? hit.path : "");
    setFound(NOTHING);
    close();
    onPick(hit);
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && isOpen) {
      event.preventDefault(); // a dialog around it stays
      event.stopPropagation();
      if (!isKept) setText("");
      return close();
    }
    if (!isOpen || !hits.length) return event.key === "ArrowDown" ? setOpen(true) : undefined;
    if (event.key === "Enter" && (active >= 0 || !isKept)) {
      event.preventDefault();
      return choose(hits[Math.max(0, active)]);
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return undefined;
    event.preventDefault();
    return setActive((Math.max(active, by < 0 ? 0 : -1) + by + hits.length) % hits.length);
  };
  const isListed = isOpen && hits.length > 0;
  const typed = as === "input" ? { "aria-label": label, onInput: (/** @type {any} */ event) => type(event.target.value) } : { label, onChange: type };
  return html`<div class="search" ref=${root}>
    <${as} ...${rest} ...${typed} role="combobox" value=${text} autocomplete="off" spellcheck=${false} maxlength=${MAX_CHARACTERS}
      aria-expanded=${String(isListed)} aria-controls=${id} aria-autocomplete="list" aria-activedescendant=${active >= 0 ? `${id}-${active}` : undefined}
      onKeyDown=${press} onFocus=${() => (text && isKept ? null : setOpen(true))} />
    <div class=${`popup${isListed || (isOpen && said && text) ? "" : " hidden"}`}>
      ${children}
      <ul id=${id} role="listbox" aria-label="Nodes found" hidden=${!isListed}>
        ${isListed && hits.map((hit, place) => html`<li
          key=${`${hit.hierarchy} ${hit.path}`} id=${`${id}-${place}`} role="option" aria-selected=${String(place === active)}
          onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => choose(hit)}
        >
          <strong>${hit.name}</strong> <span class="quiet">${levelWord(hit.level)} ${own && hit.hierarchy !== own && `in ${levelWord(hit.hierarchy)}`} </span>
          <span class="quiet trail">${hit.trail}</span>
        </li>`)}
      </ul>
      <p role="status" class="quiet">${isOpen && text ? said : ""}</p>
    </div>
  </div>`;
}

/**
 * The search on top, over all hierarchies; "/" and Ctrl+K lead to it.
 * @param {{model: Model, hierarchies: Hierarchy[], path: string, onOpen: (hit: Hit) => void}} props - `path` of the node that is shown: the search can be limited to what is below it, and is limited to its tree where a search takes one tree
 */
export function Search({ model, hierarchies, path, onOpen }) {
  const [isBelow, setBelow] = useState(false);
  const { api, hierarchy } = model;
  const all = [hierarchy, ...(isBelow && path ? [] : hierarchies.filter((one) => one !== hierarchy))];
  const under = isBelow ? path : hierarchy.searchNeedsUnder ? treeOf(path) : "";
  useEffect(() => {
    const focus = (/** @type {KeyboardEvent} */ event) => {
      const isTyping = event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
      if (!((event.ctrlKey || event.metaKey) && event.key === "k") && (event.key !== "/" || isTyping)) return;
      event.preventDefault();
      const field = /** @type {HTMLElement | null} */ (document.querySelector(".top [role=combobox]"));
      field?.blur(); // so that it opens also where it has the focus
      field?.focus();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  const isOff = !all.some((one) => one.searchField && (!one.searchNeedsUnder || under));
  const find = (/** @type {string} */ text) => {
    if (text) api.begin();
    return found(api, all, text, under);
  };
  return html`<${Picker} label="Search" type="search" disabled=${isOff} placeholder=${isOff ? "Open a tree to search it" : "Search (press /)"}
    find=${find} version=${`${hierarchy.name} ${under}`} own=${hierarchy.name} onPick=${onOpen}>
    ${path && html`<label class="below"><input type="checkbox" checked=${isBelow} onChange=${() => setBelow(!isBelow)} /> Only below ${path}</label>`}
  <//>`;
}
