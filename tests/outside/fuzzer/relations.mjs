// Relations of nodes by their paths alone: who is whose child, and in which order, as the documentation says.
import { byCodePoint, byKeys } from "./text.mjs";
import { Refused, Unsure } from "./conditions.mjs";

const parentOf = (path) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : null);

export class Hierarchy {
  constructor({ name, nodes, levels, reordered, rootLevels, under, attributes }) {
    this.name = name;
    Object.assign(this, { rootLevels, under, attributes });
    this.levels = levels;
    this.byPath = new Map(nodes.map((node) => [node.path, node]));
    this.byId = new Map(nodes.map((node) => [node.id, node]));
    this.childrenOf = new Map([[null, []]]);
    for (const node of nodes) this.childrenOf.set(node.path, []);
    for (const node of nodes) {
      node.$hierarchy = this;
      this.childrenOf.get(parentOf(node.path)).push(node);
    }
    const first = new Set(reordered);
    // docs/concepts.md: "ordered by parent and rank", and the rank of a city Omaha is CITY#Omaha#: so levels by name.
    const order = (a, b) => byCodePoint(a.level, b.level)
      || first.has(b.path) - first.has(a.path) || byKeys([a.key], [b.key]);
    for (const list of this.childrenOf.values()) list.sort(order);
  }

  parent = (node) => this.byPath.get(parentOf(node.path)) ?? null;
  ancestors = (node) => (this.parent(node) ? [...this.ancestors(this.parent(node)), this.parent(node)] : []);
  children = (node) => this.childrenOf.get(node.path);
  roots = () => this.childrenOf.get(null);

  /** "Levels that no root can have are listed in all trees, in the order of paths", with roots of other levels. */
  inAllTrees(deep) {
    const roots = [...this.roots()].sort((a, b) => byKeys([a.key], [b.key]));
    return roots.flatMap((root) => [root, ...this.descendants(root).filter((one) => deep.includes(one.level))]);
  }

  /** "Descendants, ordered by path": each node right before its own descendants. */
  descendants(node) {
    const children = [...this.children(node)].sort((a, b) => byKeys([a.key], [b.key]));
    return children.flatMap((child) => [child, ...this.descendants(child)]);
  }

  /** "As editors put them: by level, then by position; of descendants depth-first." */
  asShown(node) {
    return this.childrenOf.get(node?.path ?? null).flatMap((child) => [child, ...this.asShown(child)]);
  }

  /** The levels that may stand in a list, by what each may stand under. */
  levelsIn(kind, node, { level, maxDepth }) {
    if (kind === "roots") return level ?? this.rootLevels;
    let above = [node.level];
    const found = new Set();
    for (let left = kind === "descendants" ? maxDepth ?? 32 : 1; left > 0; left--) {
      above = this.levels.filter((one) => this.under[one].some((each) => above.includes(each)));
      above.forEach((one) => found.add(one));
    }
    return [...found].filter((one) => level?.includes(one) ?? true);
  }

  /** The nodes of a list before it is cut into pages. */
  whole(kind, node, args, lists) {
    if (args.level?.length === 0) throw new Refused("no levels");
    const deep = kind === "roots" ? (args.level ?? []).filter((one) => !this.rootLevels.includes(one)) : [];
    let found = deep.length ? this.inAllTrees(deep) : this[kind](node);
    if (args.maxDepth != null) {
      if (args.maxDepth < 1) throw new Unsure("maxDepth");
      found = found.filter((one) => one.depth <= node.depth + args.maxDepth);
    }
    if (args.level != null) found = found.filter((one) => args.level.includes(one.level));
    if (args.where != null) {
      lists.check(args.where);
      const levels = this.levelsIn(kind, node, args);
      if (levels.length && levels.every((level) => lists.isNeverMet(this, level, args.where))) {
        throw new Refused("no node in the list can meet it");
      }
      found = found.filter((one) => lists.meets(this.name, one, args.where));
    }
    if (args.orderBy == null) return found;
    const top = kind === "roots" ? null : node;
    return lists.sort(this.name, found, args.orderBy, args.where, this.asShown(top));
  }
}

/** The page of a list, as Relay's specification of connections cuts it. `place` gives the index of a cursor's node. */
export function page(whole, args, place) {
  const { first = null, last = null, after = null, before = null } = args;
  for (const number of [first, last]) if (number !== null && number < 0) throw new Refused("a negative number");
  if ((first !== null && last !== null) || first === 0 || last === 0) throw new Unsure("both ends");
  if (first > 10000 || last > 10000) throw new Unsure("a large page");
  let start = after === null ? 0 : place(after) + 1;
  let end = before === null ? whole.length : place(before);
  if (after !== null && before !== null) throw new Unsure("both cursors");
  end = Math.max(start, end);
  const [low, high] = [start, end];
  if (first !== null) end = Math.min(end, start + first);
  if (last !== null) start = Math.max(start, end - last);
  return {
    nodes: whole.slice(start, end),
    // Relay leaves open what is before `after`, and what is behind `before`.
    hasNextPage: before !== null ? null : first !== null ? end < high : false,
    hasPreviousPage: after !== null ? null : last !== null ? start > low : false,
  };
}
