// Parts that all views share: icons, states of regions, and menus.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";

const PATHS = {
  filter: "M2 3h12l-4.5 5.5V13l-3-1.5v-3z", columns: "M2 3h12v10H2zM6.5 3v10M10.5 3v10", export: "M8 2v8m-3-3 3 3 3-3M3 13h10",
  query: "M5 4 1.5 8 5 12m6-8 3.5 4L11 12M9 3 7 13", update: "M3 13l.7-3L11 2.7 13.3 5 6 12.3zM9.5 4.2l2.3 2.3", create: "M8 3v10M3 8h10",
  rename: "M3 4V3h10v1M8 3v10M6 13h4", move: "M8 2v12M2 8h12M8 2 6 4m2-2 2 2M8 14l-2-2m2 2 2-2M2 8l2-2M2 8l2 2m10-2-2-2m2 2-2 2",
  delete: "M3 4h10M6 4V2.5h4V4m-5.5 0 .6 9.5h5.8l.6-9.5", key: "M10 6.5a3 3 0 1 1-1-2.2M9.5 6.5H14V9", collapse: "M4 6l4-4 4 4M4 10l4 4 4-4",
  none: "M4 4l8 8m0-8-8 8",
};

/** An icon of 16 by 16, as wide as a letter and in the colour of the text. @param {{name: keyof typeof PATHS}} props */
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

/** @typedef {"loading" | "empty" | "failed" | "gone" | "moved"} Kind */

/** The role of each state: what went wrong is read out at once. @type {Record<Kind, string | undefined>} */
const ROLES = { loading: "status", empty: undefined, failed: "alert", gone: "alert", moved: "status" };

/**
 * The state of a region that has nothing else to show, as one sentence with one action.
 * @param {{kind: Kind, children?: unknown, action?: unknown, href?: string, onAction?: () => unknown}} props - `action` is the word of its button, or of its link with `href`
 */
export const State = ({ kind, children = "Loading…", action = "Try again", href, onAction }) => html`<p class="state ${kind}" role=${ROLES[kind]}>
  <span>${children}</span>
  ${href ? html`<a class="button" href=${href}>${action}</a>` : onAction && html`<button type="button" onClick=${onAction}>${action}</button>`}
</p>`;

/**
 * A button with a panel below it, which Escape and a click elsewhere close.
 * @param {{label: unknown, asked?: number, children?: any}} props - it opens whenever `asked` grows; a function as child gets what closes it
 */
export function Menu({ label, asked = 0, children }) {
  const [isOpen, setOpen] = useState(asked > 0);
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => setOpen(asked > 0), [asked]);
  useEffect(() => {
    if (!isOpen) return undefined;
    root.current?.querySelector("input")?.focus();
    const close = (/** @type {Event} */ event) => {
      const isInside = root.current?.contains(/** @type {Node} */ (event.target));
      if (event instanceof KeyboardEvent ? event.key !== "Escape" : isInside) return;
      setOpen(false);
      if (isInside) root.current?.querySelector("button")?.focus();
    };
    const kinds = ["keydown", "pointerdown", "focusin"];
    kinds.forEach((kind) => addEventListener(kind, close));
    return () => kinds.forEach((kind) => removeEventListener(kind, close));
  }, [isOpen]);
  return html`<div class="menu" ref=${root}>
    <button type="button" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>${label}</button>
    ${isOpen && html`<div class="popup panel">${typeof children === "function" ? children(() => setOpen(false)) : children}</div>`}
  </div>`;
}
