// Focus: what has it may leave the document, or be hidden, and browsers then give it to the body, from where a keyboard
// starts at the top again. Here it goes to the heading of the nearest part around it that is still there.

const HEADINGS = "h1, h2, h3, legend";

/** @type {Element[]} what was focused last, and what was around it */
let trail = [];

/** Whether an element can be focused, so far as what is around it allows it. @param {Element | null} element */
const isUsable = (element) => Boolean(element?.isConnected && element.checkVisibility() && !element.closest("[inert]"));

/** Whether nothing that can be used has the focus. */
export const isLost = () => document.activeElement === document.body || !isUsable(document.activeElement);

/** Focus the first heading within an element, or else itself if it takes the focus. @param {Element} element @returns {boolean} whether there was one */
export function focusHeading(element) {
  const heading = [...element.querySelectorAll(HEADINGS)].find(isUsable);
  const target = /** @type {HTMLElement | undefined} */ (heading ?? (element.hasAttribute("tabindex") ? element : undefined));
  if (heading && !heading.hasAttribute("tabindex")) heading.setAttribute("tabindex", "-1");
  target?.focus({ preventScroll: true });
  return Boolean(target);
}

/** Keep the focus in the page from now on. */
export function keepFocus() {
  addEventListener("focusin", ({ target }) => {
    trail = [];
    for (let one = /** @type {Element | null} */ (target); one; one = one.parentElement) trail.push(one);
  });
  addEventListener("pointerdown", ({ target }) => {
    if (!trail[0]?.contains(/** @type {Node} */ (target))) trail = []; // a click on nothing takes the focus away
  });
  const observer = new MutationObserver(() => {
    if (!trail.length || isUsable(trail[0]) || !isLost()) return;
    trail.slice(1).filter(isUsable).some(focusHeading);
  });
  observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ["class", "hidden", "inert"] });
}
