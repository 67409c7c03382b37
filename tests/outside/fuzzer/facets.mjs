// Facets as docs/lists.md describes them: the values of the nodes of a list, counted one field after another.
import { camel, comparable, Refused } from "./conditions.mjs";
import { byCodePoint } from "./text.mjs";

const WITH_EXTREMES = ["Int", "Long", "Float", "Decimal", "Date", "DateTime"];
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** The facets that are asked of a list with these arguments. */
export function facets(hierarchy, kind, node, args, { fields, first }, lists) {
  if (!fields.length || fields.length > 10 || new Set(fields).size < fields.length) throw new Refused("fields of facets");
  if (first < 0 || first > 100) throw new Refused("first of facets");
  return fields.map((field) => {
    // "A field is counted without its own condition": what stands "directly in `where` under its name".
    const where = Object.entries(args.where ?? {}).filter(([name]) => name !== camel(field));
    const whole = hierarchy.whole(kind, node, { ...args, where: Object.fromEntries(where), orderBy: null }, lists);
    return { field, ...count(hierarchy, whole, camel(field), first, lists) };
  });
}

function count(hierarchy, whole, name, first, lists) {
  const type = lists.typeOf(hierarchy.name, name).replace(/[[\]]/g, "");
  const isText = type === "String" || type === "Url";
  const convert = isText ? (value) => value : comparable(type, lists.enums);
  const found = new Map();
  let missingCount = 0;
  for (const one of whole) {
    const values = [lists.value(one, name) ?? []].flat();
    const keys = new Map();
    for (const value of values) if (!keys.has(convert(value))) keys.set(convert(value), value);
    // Of equal values, such as 1.0 and 1.00, the first one is shown.
    for (const [key, value] of keys) {
      if (!found.has(key)) found.set(key, { key, value, text: String(value), count: 0 });
      found.get(key).count += 1;
    }
    missingCount += lists.value(one, name) == null ? 1 : 0;
  }
  const folded = comparable(type, lists.enums);
  const all = [...found.values()];
  const hasExtremes = WITH_EXTREMES.includes(type) && all.length;
  const [least, greatest] = hasExtremes ? [-1, 1].map((sign) => all.reduce((a, b) => (compare(b.key, a.key) === sign ? b : a))) : [];
  // "By their number of nodes, then in the order in which lists sort them"; equal ones of those by their characters.
  if (first > 0) {
    all.sort((a, b) => b.count - a.count || compare(folded(a.value), folded(b.value)) || byCodePoint(a.text, b.text));
  }
  return {
    distinctCount: all.length, missingCount, minimum: least?.text ?? null, maximum: greatest?.text ?? null,
    values: all.slice(0, first).map(({ text, count }) => ({ value: text, count })),
  };
}
