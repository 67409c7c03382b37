// Words as people read them, and the addresses of the page.

/** A level as a word: POSTAL_CODE is "postal code". @param {string} level */
export const levelWord = (level) => level.toLowerCase().replaceAll("_", " ");

/** An English plural. @param {string} word */
export function plural(word) {
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return /(s|x|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
}

/** The name of a field as words: squareFeet is "Square feet". @param {string} field */
export function fieldWords(field) {
  const words = field.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/_/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The language of a tag, in English where the browser has a word for it. @param {string} tag */
export function languageWord(tag) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

// -- addresses ---------------------------------------------------------------------------------------------------------

/**
 * The address of a node on this page; without a path, of its hierarchy. `query` says how its list is shown.
 * @param {string} hierarchy @param {string} [path] @param {string} [query]
 */
export function addressOf(hierarchy, path = "", query = "") {
  const parts = [hierarchy.toLowerCase(), ...(path ? path.split("/") : [])];
  return `#${parts.map(encodeURIComponent).join("/")}${query && `?${query}`}`;
}

/** What an address names. @param {string} hash @returns {{hierarchy: string, path: string, query: string}} */
export function placeOf(hash) {
  const [place, ...query] = hash.slice(1).split("?");
  const [hierarchy = "", ...path] = place.split("/").map(decoded);
  return { hierarchy: hierarchy.toUpperCase(), path: path.filter(Boolean).join("/"), query: query.join("?") };
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a "%" that somebody typed
  }
}

/** The path above; empty for a root. @param {string} path */
export const parentOf = (path) => path.split("/").slice(0, -1).join("/");

/** The path of the root of its tree; empty without a path. @param {string} path */
export const treeOf = (path) => path.split("/")[0];

/** The paths from the root down to a path. @param {string} path */
export const prefixes = (path) => path.split("/").map((_, place, keys) => keys.slice(0, place + 1).join("/"));
