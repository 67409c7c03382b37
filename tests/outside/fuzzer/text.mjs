// Texts and languages as docs/lists.md, docs/decisions/sorting.md and docs/languages.md describe them.

/** Order of the names of levels. */
export function byCodePoint(a, b) {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const difference = left[i].codePointAt(0) - right[i].codePointAt(0);
    if (difference) return difference;
  }
  return left.length - right.length;
}

/** The keys of a path: "Within a key, / is escaped as %2F and % as %25". Undefined for what is no path. */
export function keysOf(path) {
  if (!path.split("/").every((part) => isKey(part) && !/%(?!2F|25)/.test(part))) return undefined;
  return path.normalize("NFC").split("/").map((part) => part.replaceAll("%2F", "/").replaceAll("%25", "%"));
}

/** Whether a text can be a key without doubt. */
export const isKey = (text) => text !== "" && !/^\s|\s$|[\p{C}\p{M}]/u.test(text) && text.length <= 300;

/** "In a key, every character up to `%` is percent-encoded … and the byte order of keys is the order of the tree". */
const bytes = (key) => Buffer.from(Array.from(key.normalize("NFC"),
  (c) => (c <= "%" ? `%${c.codePointAt(0).toString(16).toUpperCase().padStart(2, "0")}` : c)).join(""));

/** The order of the tree: segment by segment, a parent before its descendants. */
export function byKeys(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = Buffer.compare(bytes(a[i]), bytes(b[i]));
    if (difference) return difference;
  }
  return a.length - b.length;
}

/** "Texts are folded, not collated: NFKD, without combining marks, casefolded", of the first 100 characters. */
export const fold = (text) =>
  Array.from(text).slice(0, 100).join("").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Whether `fold` is sure: JavaScript has no full case folding, and truncation may come before or after it. */
export const foldable = (text) =>
  Array.from(text).length <= 100 && !/[^\p{Script=Latin}\p{Script=Common}]|[ßẞſﬀ-ﬆ\u{10000}-\u{10ffff}]/u.test(text);

/** Whether a text is a tag that is written as usual, so that nothing has to be known about the case of tags. */
export const isUsualTag = (tag) => /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?$/.test(tag);

/** "Each tag is tried as it is, then shortened": the language of `texts` that is chosen, or null. */
export function choose(texts, languages) {
  for (const tag of languages) {
    for (let parts = tag.split("-"); parts.length; parts = parts.slice(0, -1)) {
      const found = texts.find((text) => text.language === parts.join("-"));
      if (found) return found;
    }
  }
  return null;
}
