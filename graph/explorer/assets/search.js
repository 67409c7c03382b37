// The search field on top: a combobox that lists the nodes whose words begin with what is typed.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { sentence } from "./api.js";
import { levelWord } from "./words.js";
/** @import { Model } from "./session" */
/** @import { SearchQuery } from "./types" */

const HITS = 10;
export const PAUSE_MS = 150;
export const MAX_CHARACTERS = 200;
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
  const { searchNeedsUnder, listField } = model.hierarchy;
  const tree = searchNeedsUnder && path ? model.rootOf(path) : "";
  const under = (isBelow ? path : tree) || null;

  const close = () => {
    latest.current += 1;
    setHits([]);
    setSaid("");
    setActive(-1);
  };
  const search = async (/** @type {string} */ words) => {
    const turn = ++latest.current;
    try {
      model.api.begin();
      const { data } = await model.api.ask(/** @type {string} */ (model.documents.search), { text: words, under, first: HITS });
      if (turn !== latest.current) return;
      const { nodes, complete } = /** @type {NonNullable<SearchQuery["found"]>} */ (data.found);
      setHits(nodes);
      setActive(-1);
      const more = complete ? "" : " There may be better ones: type on.";
      const where = isBelow && under ? ` below ${under}` : "";
      setSaid(nodes.length ? `${nodes.length} found.${more}` : `Nothing${where} has words that begin with “${words}”.`);
    } catch (error) {
      if (turn !== latest.current) return;
      setHits([]);
      setSaid(sentence(error));
    }
  };
  useEffect(() => {
    const words = text.trim();
    if (!words || !isLongEnough(words)) return close();
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
    if (!hits.length) return undefined;
    if (event.key === "Enter") return choose(hits[Math.max(0, active)]);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return undefined;
    event.preventDefault();
    return setActive((active + by + hits.length) % hits.length);
  };
  const isOff = searchNeedsUnder && !under;
  const hint = isOff ? "Open a tree to search it" : `Search ${under ?? listField}`;
  return html`<div class="search" onfocusout=${(/** @type {FocusEvent} */ event) => {
    if (!(/** @type {Element} */ (event.currentTarget)).contains(/** @type {Node | null} */ (event.relatedTarget))) close();
  }}>
    <input
      type="search" role="combobox" aria-label="Search" placeholder=${hint} disabled=${isOff} value=${text}
      aria-expanded=${String(hits.length > 0)} aria-controls="hits" aria-autocomplete="list" autocomplete="off"
      aria-activedescendant=${active >= 0 ? `hit-${active}` : undefined} spellcheck=${false} maxlength=${MAX_CHARACTERS}
      onInput=${(/** @type {InputEvent} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)}
      onKeyDown=${press} onFocus=${() => isLongEnough(text.trim()) && search(text.trim())}
    />
    <div class=${`popup${hits.length || said ? "" : " hidden"}`}>
      ${path && html`<label class="below"><input type="checkbox" checked=${isBelow} onChange=${() => setBelow(!isBelow)} /> Only below ${path}</label>`}
      <ul id="hits" role="listbox" aria-label="Nodes found" hidden=${!hits.length}>
        ${hits.map((hit, place) => html`<li
          key=${hit.path} id=${`hit-${place}`} role="option" aria-selected=${String(place === active)}
          onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => choose(hit)}
        >
          <strong>${hit.name}</strong> <span class="quiet">${levelWord(hit.level)} </span>
          <span class="quiet trail">${hit.ancestors?.map((/** @type {any} */ one) => one.name).join(" › ")}</span>
        </li>`)}
      </ul>
      <p role="status" class="quiet">${said}</p>
    </div>
  </div>`;
}
