// The tree on the left: a hierarchy as lines, of which those in view are in the document; children come page by page.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { countedLevels } from "./documents.js";
import { number, quantity } from "./format.js";
import { isParent, linesOf } from "./model.js";
import { useWindow } from "./windowing.js";
import { addressOf, fieldWords, levelWord, parentOf } from "./words.js";
/** @import { Line, Model, Row } from "./model" */

const HEIGHT = 32;
const INDENT = 14;
const TYPED_MS = 700; // letters that come faster are one word

/** What names a line: the path of its node, or what else it is. @param {Line} line */
const keyOf = ({ row, to, family }) => (row ? row.path : to !== undefined ? `//${to}` : `${family.path}//more`);

/** The number of children of each level, such as "3 regions, 2 cities". @param {Model["hierarchy"]} hierarchy @param {Row} row */
export function childCounts(hierarchy, row) {
  const counted = countedLevels(hierarchy).filter(({ name }) => row[`children_${name}`] > 0);
  const parts = counted.map(({ name }) => quantity(row[`children_${name}`], levelWord(name)));
  return parts.join(", ") || (row.childCount ? number(row.childCount) : "");
}

/** What a drop asks for: at a side of a sibling, or in a node. @typedef {(path: string, to: {to: string, side?: string, beside?: string}) => void} Drop */

/**
 * @param {{model: Model, selected: string, isOpen: boolean, onOpen: (path: string) => void, onMove: Drop | null}} props with `isOpen` a small screen shows the tree
 */
export function Tree({ model, selected, isOpen, onOpen, onMove }) {
  const lines = linesOf(model);
  // Where keys have led since the node was selected; an effect that forgets it would come after the next key.
  const [moved, setMoved] = useState({ model, selected, key: "" });
  const active = moved.model === model && moved.selected === selected ? moved.key : "";
  const { ref, first, last } = useWindow(lines.length, HEIGHT);
  const at = Math.max(0, lines.findIndex((line) => keyOf(line) === (active || selected)));
  const visible = lines.slice(first, last);

  const show = (/** @type {number} */ place) => {
    const tree = ref.current;
    const above = place * HEIGHT;
    if (above < tree.scrollTop) tree.scrollTop = above;
    else if (above + HEIGHT > tree.scrollTop + tree.clientHeight) tree.scrollTop = above + HEIGHT - tree.clientHeight;
  };
  useEffect(() => {
    const place = lines.findIndex(({ row }) => row && row.path === selected);
    if (place >= 0 && !isInView(ref.current, place)) ref.current.scrollTop = (place + 0.5) * HEIGHT - ref.current.clientHeight / 2;
  }, [selected, model, isOpen, lines.some(({ row }) => row && row.path === selected)]);
  useEffect(() => {
    const ahead = visible.find(({ row, family }) => !row && !family.error && !family.later.length);
    // An effect may run after the page that it would ask for has come.
    if (ahead && ahead.position > ahead.family.rows.length) model.load(ahead.family);
  });

  const go = (/** @type {number} */ place) => {
    if (!lines[place]) return;
    show(place);
    setMoved({ model, selected, key: keyOf(lines[place]) });
  };
  const typed = useRef({ text: "", time: 0 });
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { text, time } = typed.current;
    const isMore = text && event.timeStamp - time < TYPED_MS;
    if (event.key.length === 1 && (event.key !== " " || isMore)) typed.current = { text: (isMore ? text : "") + event.key.toLowerCase(), time: event.timeStamp };
    else typed.current = { text: "", time: 0 };
    const next = typed.current.text ? named(typed.current.text, lines, at) : step(event.key, lines, at, model);
    if (!next) return;
    event.preventDefault();
    if (next.toggle) model.toggle(next.toggle);
    else if (next.open) onOpen(next.open);
    else if (next.more) model.retry(next.more);
    else if (next.root !== undefined) model.beginAt(next.root);
    else if (next.place !== undefined) go(next.place);
  };

  const activeId = at >= first && at < last ? `line-${at}` : undefined;
  return html`<div
    class="tree" role="tree" tabindex="0" aria-label=${fieldWords(model.hierarchy.listField)} ref=${ref}
    aria-activedescendant=${activeId} onKeyDown=${press}
    onClick=${() => ref.current.focus({ preventScroll: true })}
  >
    <div role="none" style=${{ height: lines.length * HEIGHT }}>
      <div role="none" style=${{ transform: `translateY(${first * HEIGHT}px)` }}>
        ${visible.map((line, place) => html`<${TreeLine}
          key=${keyOf(line)} line=${line} id=${`line-${first + place}`}
          model=${model} isActive=${first + place === at} isSelected=${line.row?.path === selected}
          onOpen=${onOpen} onMove=${onMove}
        />`)}
      </div>
    </div>
  </div>`;
}

/** @param {Element} tree @param {number} place */
const isInView = (tree, place) => place * HEIGHT >= tree.scrollTop && (place + 1) * HEIGHT <= tree.scrollTop + tree.clientHeight;

/**
 * What a key does, as the ARIA pattern of trees has it.
 * @param {string} key @param {Line[]} lines @param {number} at @param {Model} model
 * @returns {{place?: number, toggle?: Row, open?: string, more?: Line["family"], root?: string} | null}
 */
function step(key, lines, at, model) {
  const { row, family, to } = lines[at] ?? {};
  if (key === "ArrowDown" || key === "ArrowUp") return { place: at + (key === "ArrowDown" ? 1 : -1) };
  if (key === "Home") return { place: 0 };
  if (key === "End") return { place: lines.length - 1 };
  if (!row) return key !== "Enter" ? null : to !== undefined ? { root: to } : { more: family };
  const isOpen = model.expanded.has(row.path);
  if (key === "Enter" || key === " ") return { open: row.path };
  if (key === "ArrowRight" && !isOpen) return isParent(row) ? { toggle: row } : {};
  if (key === "ArrowRight") return lines[at + 1]?.row && lines[at + 1].family.path === row.path ? { place: at + 1 } : {};
  if (key === "ArrowLeft") {
    if (isOpen && isParent(row)) return { toggle: row };
    const above = lines.findIndex((line) => line.row && line.row.path === lines[at].family.path);
    return above < 0 ? {} : { place: above };
  }
  return null;
}

/** The next line whose name begins with what was typed; one letter leads on from where one is. @param {string} text @param {Line[]} lines @param {number} at */
function named(text, lines, at) {
  const from = text.length > 1 ? at : at + 1;
  const found = [...lines.keys()].slice(from).concat([...lines.keys()].slice(0, from))
    .find((place) => lines[place].row?.name.toLowerCase().startsWith(text));
  return found === undefined ? null : /** @type {ReturnType<typeof step>} */ ({ place: found });
}

/** The row that is dragged; a browser tells its data only to where it is dropped. @type {Row | null} */
let dragged = null;

/** Where a drop on a line puts the dragged row: at a side only of a sibling of its level. @param {DragEvent} event @param {Row} row */
function sideOf(event, row) {
  if (!dragged || dragged.path === row.path) return "";
  const part = (event.clientY - (/** @type {Element} */ (event.currentTarget)).getBoundingClientRect().top) / HEIGHT;
  return dragged.level !== row.level || (part > 0.3 && part < 0.7) ? "into" : part < 0.5 ? "before" : "after";
}

/**
 * @param {{line: Line, id: string, model: Model, isActive: boolean, isSelected: boolean, onOpen: (path: string) => void, onMove: Drop | null}} props
 */
function TreeLine({ line, id, model, isActive, isSelected, onOpen, onMove }) {
  const { row, to, family, depth, position } = line;
  const [side, setSide] = useState("");
  const classes = ["line", isActive && "active", isSelected && "selected", side, !row && "more"];
  const common = {
    id, role: "treeitem", class: classes.filter(Boolean).join(" "), style: { paddingLeft: `${8 + depth * INDENT}px` },
    "aria-level": depth + 1, "aria-posinset": position, "aria-setsize": family.hasMore ? -1 : family.rows.length,
    "aria-selected": String(isSelected),
  };
  if (!row && to !== undefined) {
    const text = depth ? "Show what is deeper" : `Show what is above`;
    return html`<div ...${common} onClick=${() => model.beginAt(to)} title=${text}><span class="name">${depth ? "↓" : "↑"} ${text}</span></div>`;
  }
  if (!row) {
    const rest = (model.family(family.path).total ?? 0) - family.rows.length;
    const more = rest > 0 ? `${number(rest)} more` : "Show more";
    const text = family.loading ? "Loading…" : family.error ? `${family.error} Try again` : more;
    return html`<div ...${common} onClick=${() => model.retry(family)} title=${text}><span class="name">${text}</span></div>`;
  }
  const canOpen = isParent(row);
  const isOpen = canOpen && model.expanded.has(row.path);
  const counts = childCounts(model.hierarchy, row);
  const drag = onMove ? {
    draggable: true,
    onDragStart: () => (dragged = row),
    onDragEnd: () => (dragged = null),
    onDragOver: (/** @type {DragEvent} */ event) => {
      const found = sideOf(event, row);
      if (found) event.preventDefault();
      setSide(found);
    },
    onDragLeave: () => setSide(""),
    onDrop: (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      setSide("");
      const found = sideOf(event, row);
      if (found && dragged) onMove(dragged.path, found === "into" ? { to: row.path } : { to: parentOf(row.path), side: found, beside: row.path });
    },
  } : {};
  return html`<div
    ...${common} ...${drag} aria-expanded=${canOpen ? String(isOpen) : undefined}
    onClick=${(/** @type {MouseEvent} */ event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) onOpen(row.path); // else the link opens a tab
    }} title=${`${row.name}, ${levelWord(row.level)}${counts && `: ${counts}`}`}
  >
    <span class=${`twisty${isOpen ? " open" : ""}`} aria-hidden="true" onClick=${(/** @type {Event} */ event) => {
      event.stopPropagation();
      if (canOpen) model.toggle(row);
    }}>${canOpen ? "›" : ""}</span>
    <a class="name" href=${addressOf(model.hierarchy.name, row.path)} tabindex="-1">${row.name}</a>
    <span class="quiet count">${counts}</span>
  </div>`;
}


const [LEAST_WIDTH, MOST_WIDTH, USUAL_WIDTH, WIDTH_STEP] = [180, 720, 336, 24];

/** The edge of the tree: it is dragged, or moved by arrow keys. @param {{onWidth: (pixels: number) => void, width: number}} props */
export function Edge({ width, onWidth }) {
  const set = (/** @type {number} */ to) => onWidth(Math.round(Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, to))));
  const press = (/** @type {KeyboardEvent} */ event) => {
    const to = { ArrowLeft: width - WIDTH_STEP, ArrowRight: width + WIDTH_STEP, Home: LEAST_WIDTH, End: MOST_WIDTH }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    set(to);
  };
  return html`<div class="edge" role="separator" tabindex="0" aria-orientation="vertical" aria-label="Width of the tree" aria-valuenow=${width}
    aria-valuemin=${LEAST_WIDTH} aria-valuemax=${MOST_WIDTH} onKeyDown=${press} onDblClick=${() => set(USUAL_WIDTH)}
    onPointerDown=${(/** @type {PointerEvent} */ event) => (/** @type {Element} */ (event.target)).setPointerCapture(event.pointerId)}
    onPointerMove=${(/** @type {PointerEvent} */ event) => event.buttons && set(event.clientX)}></div>`;
}
