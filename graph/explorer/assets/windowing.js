// Windowing: of a long list only the lines in view are in the document, so that its length costs nothing.
import { useEffect, useRef, useState } from "./vendor/preact.js";

const BEYOND = 10; // lines above and below those in view

/**
 * The lines in view of a scrolling element whose lines have the same height in pixels.
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

/** The place of an element that is kept with the entry of the browser's history, in pixels. @param {string} name */
export const keptScroll = (name) => history.state?.[name] ?? 0;

/**
 * Keep the place of a scrolling element with the entry of the browser's history, so that Back and reload lead there.
 * @param {{current: any}} ref @param {string} name @param {unknown} shown what the element shows @param {boolean} isReady
 */
export function useKeptScroll(ref, name, shown, isReady) {
  useEffect(() => {
    if (isReady) ref.current?.scrollTo(0, keptScroll(name));
  }, [shown, isReady, location.hash]);
  useEffect(() => {
    const element = ref.current;
    if (!element || !isReady) return undefined;
    let timer = 0;
    const keep = () => {
      clearTimeout(timer);
      timer = setTimeout(() => history.replaceState({ ...history.state, [name]: element.scrollTop }, ""), 150);
    };
    element.addEventListener("scroll", keep, { passive: true });
    return () => {
      clearTimeout(timer);
      element.removeEventListener("scroll", keep);
    };
  }, [shown, isReady, location.hash]);
}
