// The tree on the left: a hierarchy as lines, of which those in view are in the document; children come page by page.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { addressOf, countedLevels } from "./hierarchy.js";
import { fieldWords, levelWord, number, quantity } from "./words.js";
/** @import { Family, Model, Row } from "./session" */

/**
 * One line of the tree: a node, or the end of what is loaded of a family.
 * @typedef {{row: Row | null, family: Family, depth: number, position: number}} Line
 */

const HEIGHT = 32;
const [INDENT, DEEP_INDENT, DEEP] = [16, 3, 6]; // pixels a level, and from which level on there is less room
const BEYOND = 10; // lines above and below those in view
const DRAGGED = "application/x-clade-path";

/**
 * @param {{model: Model, selected: string, isOpen: boolean, onOpen: (path: string) => void,
 *   onMove: ((path: string, to: string) => void) | null}} props with `isOpen` a small screen shows the tree
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
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = step(event.key, lines, at, model);
    if (!next) return;
    event.preventDefault();
    if (next.toggle) model.toggle(next.toggle);
    else if (next.open) onOpen(next.open);
    else if (next.more) model.retry(next.more);
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

/**
 * @param {{line: Line, id: string, model: Model, isActive: boolean, isSelected: boolean,
 *   onOpen: (path: string) => void, onMove: ((path: string, to: string) => void) | null}} props
 */
function TreeLine({ line, id, model, isActive, isSelected, onOpen, onMove }) {
  const { row, family, depth, position } = line;
  const [isTarget, setTarget] = useState(false);
  const classes = ["line", isActive && "active", isSelected && "selected", isTarget && "target", !row && "more"];
  const common = {
    id, role: "treeitem", class: classes.filter(Boolean).join(" "), style: { paddingLeft: `${indentOf(depth)}px` },
    "aria-level": depth + 1, "aria-posinset": position, "aria-setsize": family.hasMore ? -1 : family.rows.length,
    "aria-selected": String(isSelected),
  };
  if (!row) {
    const text = family.loading ? "Loading…" : family.error ? `${family.error} Try again` : "Show more";
    return html`<div ...${common} onClick=${() => model.retry(family)} title=${text}><span class="name">${text}</span></div>`;
  }
  const canOpen = isParent(row);
  const isOpen = canOpen && model.expanded.has(row.path);
  const counts = childCounts(model.hierarchy, row);
  const drag = onMove ? {
    draggable: true,
    onDragStart: (/** @type {DragEvent} */ event) => event.dataTransfer?.setData(DRAGGED, row.path),
    onDragOver: (/** @type {DragEvent} */ event) => {
      if (!event.dataTransfer?.types.includes(DRAGGED)) return;
      event.preventDefault();
      setTarget(true);
    },
    onDragLeave: () => setTarget(false),
    onDrop: (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      setTarget(false);
      const path = event.dataTransfer?.getData(DRAGGED);
      if (path && path !== row.path) onMove(path, row.path);
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
    ${!family.path && row.path.includes("/") && html`<code class="quiet place">${row.path}</code>`}
    <span class="quiet count">${counts}</span>
  </div>`;
}

/** The lines of the tree from top to bottom. @param {Model} model @returns {Line[]} */
function linesOf(model) {
  /** @type {Line[]} */
  const lines = [];
  const walk = (/** @type {string} */ path, /** @type {number} */ depth) => {
    const family = model.family(path);
    const add = (/** @type {Row} */ row, /** @type {number} */ place) => {
      lines.push({ row, family, depth, position: place + 1 });
      if (model.expanded.has(row.path) && isParent(row)) walk(row.path, depth + 1);
    };
    family.rows.forEach(add);
    if (family.hasMore || family.error) lines.push({ row: null, family, depth, position: family.rows.length + 1 });
    family.later.forEach((row, place) => add(row, family.rows.length + place));
  };
  walk("", 0);
  return lines;
}

/** Whether a row can have children. @param {Row} row */
const isParent = (row) => row.childCount === null || row.childCount > 0;

/** What names a line: the path of its node, or that it is the end of a family. @param {Line} line */
const keyOf = ({ row, family }) => (row ? row.path : `${family.path}//more`);

/** The pixels before a line; names keep room at every depth. @param {number} depth */
const indentOf = (depth) => 8 + Math.min(depth, DEEP) * INDENT + Math.max(0, depth - DEEP) * DEEP_INDENT;

/** @param {Element} tree @param {number} place */
const isInView = (tree, place) => place * HEIGHT >= tree.scrollTop && (place + 1) * HEIGHT <= tree.scrollTop + tree.clientHeight;

/**
 * What a key does, as the ARIA pattern of trees has it.
 * @param {string} key @param {Line[]} lines @param {number} at @param {Model} model
 * @returns {{place?: number, toggle?: Row, open?: string, more?: Line["family"]} | null}
 */
function step(key, lines, at, model) {
  const { row, family } = lines[at] ?? {};
  if (key === "ArrowDown" || key === "ArrowUp") return { place: at + (key === "ArrowDown" ? 1 : -1) };
  if (key === "Home") return { place: 0 };
  if (key === "End") return { place: lines.length - 1 };
  if (!row) return family && key === "Enter" ? { more: family } : null;
  const isOpen = model.expanded.has(row.path);
  if (key === "Enter" || key === " ") return { open: row.path };
  if (key === "ArrowRight" && !isOpen) return isParent(row) ? { toggle: row } : {};
  if (key === "ArrowRight") return lines[at + 1]?.row && lines[at + 1].family.path === row.path ? { place: at + 1 } : {};
  if (key === "ArrowLeft") {
    if (isOpen && isParent(row)) return { toggle: row };
    const above = lines.findIndex((line) => line.row && line.row.path === lines[at].family.path);
    return above < 0 ? {} : { place: above };
  }
  if (key.length !== 1) return null;
  const starts = (/** @type {Line} */ line) => line.row?.name.toLowerCase().startsWith(key.toLowerCase());
  const found = [...lines.keys()].slice(at + 1).concat([...lines.keys()].slice(0, at + 1)).find((place) => starts(lines[place]));
  return found === undefined ? null : { place: found };
}

/** The number of children of each level, such as "3 regions, 2 cities". @param {Model["hierarchy"]} hierarchy @param {Row} row */
export function childCounts(hierarchy, row) {
  const counted = countedLevels(hierarchy).filter(({ name }) => row[`children_${name}`] > 0);
  const parts = counted.map(({ name }) => quantity(row[`children_${name}`], levelWord(name)));
  return parts.join(", ") || (row.childCount ? number(row.childCount) : "");
}

/**
 * The lines in view of a scrolling element whose lines have the same height in pixels. Only these are in the document, so
 * that the length of a list costs nothing.
 * @param {number} count @param {number} height
 * @returns {{ref: {current: any}, first: number, last: number}} `ref` is for the element that scrolls
 */
export function useWindow(count, height) {
  const ref = useRef(/** @type {any} */ (null));
  const [[first, last], setRange] = useState([0, 60]);
  useEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const measure = () => {
      const from = Math.max(0, Math.floor(element.scrollTop / height) - BEYOND);
      const to = Math.ceil((element.scrollTop + element.clientHeight) / height) + BEYOND;
      setRange((old) => (old[0] === from && old[1] === to ? old : [from, to]));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    measure();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, [count, height]);
  return { ref, first: Math.min(first, count), last: Math.min(last, count) };
}
