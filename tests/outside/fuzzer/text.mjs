// Texts and languages as docs/lists.md, docs/decisions/sorting.md and docs/languages.md describe them.

/** Order of keys: by code point, for any script. */
export function byCodePoint(a, b) {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const difference = left[i].codePointAt(0) - right[i].codePointAt(0);
    if (difference) return difference;
  }
  return left.length - right.length;
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
