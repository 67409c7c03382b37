// The search field on top: a combobox of nodes that have what is typed as a unique value, then of those by their words.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { sentence } from "./api.js";
import { lookupsOf, uniqueOf } from "./hierarchy.js";
import { labelOf, levelWord } from "./words.js";
/** @import { Model } from "./session" */
/** @import { SearchQuery } from "./types" */

const HITS = 10;
export const PAUSE_MS = 150;
export const MAX_CHARACTERS = 200;
const NOT_SEARCHED = { data: { found: { nodes: [], complete: true } } };
// One character of a script without spaces is a word.
const UNSPACED = /[\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Han}]/u;

/** Whether a text is searched for. @param {string} text */
export const isLongEnough = (text) => [...text].length >= 2 || UNSPACED.test(text);

/**
 * @param {{model: Model, path: string, onOpen: (path: string) => void}} props `path` of the node that is shown: the
 *   search can be limited to what is below it, and is limited to its tree where a search takes one tree
 */
export function Search({ model, path, onOpen }) {
  const [text, setText] = useState("");
  const [hits, setHits] = useState(/** @type {any[]} */ ([]));
  const [said, setSaid] = useState("");
  const [active, setActive] = useState(-1);
  const [isBelow, setBelow] = useState(false);
  const latest = useRef(0);
  const answered = useRef(""); // what the hits are of
  const wanted = useRef(""); // for which Enter was pressed before they came
  const { searchNeedsUnder, listField } = model.hierarchy;
  const names = [...new Set(uniqueOf(model.hierarchy).map(({ attribute }) => labelOf(attribute)))].join(" or ");
  const tree = searchNeedsUnder && path ? model.rootOf(path) : "";
  const under = (isBelow ? path : tree) || null;
  const isOff = searchNeedsUnder && !under;
  const isSearched = (/** @type {string} */ words) => model.documents.search && !isOff && isLongEnough(words);
  const isAsked = (/** @type {string} */ words) => words && (names || isSearched(words));

  const close = () => {
    latest.current += 1;
    wanted.current = "";
    setHits([]);
    setSaid("");
    setActive(-1);
  };
  const search = async (/** @type {string} */ words) => {
    const turn = ++latest.current;
    try {
      model.api.begin();
      const [exact, { data }] = await Promise.all([lookUp(model, words), isSearched(words)
        ? model.api.ask(/** @type {string} */ (model.documents.search), { text: words, under, first: HITS }) : NOT_SEARCHED]);
      if (turn !== latest.current) return;
      const { nodes: found, complete } = /** @type {NonNullable<SearchQuery["found"]>} */ (data.found);
      const named = exact.nodes.filter((one) => !isBelow || one.path.startsWith(`${path}/`));
      const nodes = [...named, ...found.filter((hit) => !named.some((one) => one.path === hit.path))];
      const sure = named.length ? named : nodes;
      if (wanted.current === words && sure.length === 1) return choose(sure[0]);
      answered.current = words;
      setHits(nodes);
      setActive(-1);
      const more = complete ? "" : " There may be better ones: type on.";
      const where = isBelow && under ? ` below ${under}` : "";
      const none = isSearched(words) ? `has words that begin with “${words}”` : `has the ${names} “${words}”`;
      setSaid(nodes.length ? `${nodes.length} found.${more}` : exact.problem || `Nothing${where} ${none}.`);
    } catch (error) {
      if (turn !== latest.current) return;
      setHits([]);
      setSaid(sentence(error));
    }
  };
  useEffect(() => {
    const words = text.trim();
    if (!isAsked(words)) return close();
    const timer = setTimeout(() => search(words), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, model, under]);

  const choose = (/** @type {any} */ hit) => {
    setText("");
    close();
    onOpen(hit.path);
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") return text ? setText("") : close();
    wanted.current = event.key === "Enter" ? text.trim() : "";
    if (!hits.length) return undefined;
    if (wanted.current) return answered.current === wanted.current && choose(hits[Math.max(0, active)]);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return undefined;
    event.preventDefault();
    return setActive((active + by + hits.length) % hits.length);
  };
  const words = isOff ? "Open a tree to search it" : `Search ${under ?? listField}`;
  const hint = !names ? words : model.documents.search ? `${words}, or enter ${names}` : `Enter ${names}`;
  return html`<div class="search" onfocusout=${(/** @type {FocusEvent} */ event) => {
    if (!(/** @type {Element} */ (event.currentTarget)).contains(/** @type {Node | null} */ (event.relatedTarget))) close();
  }}>
    <input
      type="search" role="combobox" aria-label="Search" placeholder=${hint} disabled=${isOff && !names} value=${text}
      aria-expanded=${String(hits.length > 0)} aria-controls="hits" aria-autocomplete="list" autocomplete="off"
      aria-activedescendant=${active >= 0 ? `hit-${active}` : undefined} spellcheck=${false} maxlength=${MAX_CHARACTERS}
      onInput=${(/** @type {InputEvent} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)}
      onKeyDown=${press} onFocus=${() => isAsked(text.trim()) && search(text.trim())}
    />
    <div class=${`popup${hits.length || said ? "" : " hidden"}`}>
      ${path && html`<label class="below"><input type="checkbox" checked=${isBelow} onChange=${() => setBelow(!isBelow)} /> Only below ${path}</label>`}
      <ul id="hits" role="listbox" aria-label="Nodes found" hidden=${!hits.length}>
        ${hits.map((hit, place) => html`<li
          key=${hit.path} id=${`hit-${place}`} role="option" aria-selected=${String(place === active)}
          onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => choose(hit)}
        >
          <strong>${hit.name}</strong> <span class="quiet">${[levelWord(hit.level), hit.by].filter(Boolean).join(", ")} </span>
          <span class="quiet trail">${hit.ancestors?.map((/** @type {any} */ one) => one.name).join(" › ")}</span>
        </li>`)}
      </ul>
      <p role="status" class="quiet">${said}</p>
    </div>
  </div>`;
}

/** The nodes that have a text as a unique value, each `by` its attribute, and why some could not be looked up. @param {Model} model @param {string} text */
async function lookUp({ api, hierarchy }, text) {
  const { document, variables, by } = lookupsOf(hierarchy, text);
  if (!by.size) return { nodes: [], problem: "" };
  const { data, errors } = await api.ask(document, variables, ({ path }) => path?.length === 1);
  const found = [...by].filter(([alias]) => data[alias]).map(([alias, one]) => ({ ...data[alias], by: labelOf(one) }));
  return {
    nodes: found.filter((one, place) => found.findIndex(({ path }) => path === one.path) === place),
    // The field of each other level says that the node is not of its level.
    problem: errors.find(({ extensions }) => extensions?.code !== "WRONG_LEVEL")?.message ?? "",
  };
}
