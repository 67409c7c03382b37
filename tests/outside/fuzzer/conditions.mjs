// Order and conditions of lists, as docs/lists.md describes them. `Unsure` where that page leaves something open.
import { byKeys, fold, foldable, choose, isKey, isUsualTag, keysOf } from "./text.mjs";

export class Unsure extends Error {}
export class Refused extends Error {}

export const camel = (name) => name.toLowerCase().replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const sure = (text) => {
  if (!foldable(text)) throw new Unsure(text);
  return fold(text);
};

/** Decimals as fractions of integers, so that no digit is lost. */
function decimal(text) {
  const [, sign, whole, part = "", exponent = "0"] = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (whole === undefined) throw new Unsure(text);
  const scale = 200 + Number(exponent) - part.length;
  if (scale < 0 || scale > 600) throw new Unsure(text);
  return BigInt(`${sign}${whole}${part}`) * 10n ** BigInt(scale);
}

const moment = (text) => {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text);
  if (!found) throw new Unsure(text);
  return `${found[1]}.${(found[2] ?? "").padEnd(9, "0")}`;
};

/** How values of a GraphQL type compare: a function to something that `<` and `===` compare. */
export function comparable(type, enums) {
  if (enums[type]) return (value) => enums[type].indexOf(value);
  if (type === "String" || type === "Url" || type === "ID" || type === "Path") return sure;
  if (type === "Decimal") return decimal;
  if (type === "DateTime") return moment;
  if (type === "Long") return (value) => BigInt(value);
  return (value) => value;
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const LAST = ["KEY", "PATH", "POSITION"];
const strings = (value) => (Array.isArray(value) ? value : [value]).filter((one) => typeof one === "string");

/** Names and tags that say nothing of what is refused. */
function usual(languages) {
  if (languages === null || languages.length > 20 || !languages.every(isUsualTag)) throw new Unsure("languages");
}

const hasChildren = (where) => Object.entries(where ?? {}).some(([name, inner]) => name === "children"
  || (["and", "or"].includes(name) && inner?.some(hasChildren)) || (name === "not" && hasChildren(inner)));

function checkNear({ latitude, longitude, kilometers }, counts) {
  counts.conditions += 1;
  if (Math.abs(latitude) > 90 || Math.abs(longitude) > 360) throw new Refused("no point of the Earth");
  if (kilometers < 0 || kilometers > 2000) throw new Refused("no radius");
}

/** Kilometers "on a sphere with the Earth's mean radius (6,371.0088 km)"; null for a node without coordinates. */
export function distance({ latitude, longitude }, from) {
  if (latitude == null || longitude == null) return null;
  const [a, b] = [latitude, from.latitude].map((one) => (one * Math.PI) / 180);
  const half = Math.sin((b - a) / 2) ** 2 + Math.cos(a) * Math.cos(b) * Math.sin(((longitude - from.longitude) * Math.PI) / 360) ** 2;
  return 2 * 6371.0088 * Math.asin(Math.min(1, Math.sqrt(half)));
}

function isNear(node, near) {
  const found = distance(node, near);
  if (found !== null && Math.abs(found - near.kilometers) < 1e-6 && found !== 0) throw new Unsure("at the edge of a circle");
  return found !== null && found <= near.kilometers;
}

function byDistance(from, a, b) {
  if (a.latitude === b.latitude && a.longitude === b.longitude) return 0;
  const difference = distance(a, from) - distance(b, from);
  if (Math.abs(difference) < 1e-6) throw new Unsure("equal distances");
  return difference;
}

export class Lists {
  /** `types`: GraphQL type of each field by hierarchy, as "String" or "[String]"; `enums`: members in their order. */
  constructor(types, enums) {
    this.types = types;
    this.enums = enums;
  }

  value(node, field, languages) {
    if (field === "name" && languages?.length) {
      return choose(node.names, languages)?.text ?? node.name;
    }
    return node[field] ?? null;
  }

  typeOf(hierarchy, field) {
    const found = this.types[hierarchy][field];
    if (!found) throw new Unsure(`type of ${field}`);
    return found;
  }

  /** Raises Refused for what the schema says of orders, and Unsure for what it leaves open. */
  checkOrder(orderBy, where) {
    orderBy.forEach(({ field, languages }, i) => {
      if (field === "DISTANCE" && !where?.near) throw new Refused("DISTANCE without near directly in where");
      if (field === "RELEVANCE" && !where?.search) throw new Refused("RELEVANCE without search directly in where");
      if (LAST.includes(field) && i < orderBy.length - 1) throw new Refused(`${field} is not the last`);
      if (languages !== undefined && field !== "NAME") {
        if (languages === null) throw new Unsure("languages");
        throw new Refused(`languages of ${field}`);
      }
      if (languages !== undefined) usual(languages);
    });
    const values = orderBy.filter(({ field }) => !LAST.includes(field)).length;
    if (values > 4) throw new Refused("more than four orders");
    if (orderBy.length > 4) throw new Unsure("four orders and a last one");
    if (new Set(orderBy.map(({ field }) => field)).size < orderBy.length) throw new Unsure("a field twice");
  }

  /** `shown` are all nodes that may be listed, depth-first in the order of editors. */
  sort(hierarchy, nodes, orderBy, where, shown) {
    this.checkOrder(orderBy, where);
    const places = new Map(shown.map((node, i) => [node, i]));
    const keys = orderBy.map(({ field, direction, languages }) => {
      const sign = direction === "DESC" ? -1 : 1;
      if (field === "POSITION") return [(node) => places.get(node), compare, sign];
      if (field === "PATH") return [(node) => keysOf(node.path), byKeys, sign];
      if (field === "DISTANCE") return [(node) => node, (a, b) => byDistance(where.near, a, b), sign];
      // "By key, then by path".
      if (field === "KEY") return [(node) => [node.key, ...keysOf(node.path)], byKeys, sign];
      const name = camel(field);
      const convert = comparable(this.typeOf(hierarchy, name), this.enums);
      return [(node) => {
        const value = this.value(node, name, languages);
        return value === null ? null : convert(value);
      }, compare, sign];
    });
    const rows = nodes.map((node) => [node, keys.map(([key]) => key(node))]);
    rows.sort(([, a], [, b]) => {
      for (let i = 0; i < keys.length; i++) {
        const [, order, sign] = keys[i];
        if (a[i] === null || b[i] === null) {
          if (a[i] !== b[i]) return a[i] === null ? 1 : -1;
        } else if (order(a[i], b[i])) return order(a[i], b[i]) * sign;
      }
      return 0;
    });
    return rows.map(([node]) => node);
  }

  /** Raises Refused for what the page says is an error. */
  check(where, depth = 0, counts = { conditions: 0, characters: 0 }) {
    if (depth > 4) throw new Unsure("depth");
    for (const [name, inner] of Object.entries(where)) {
      if (inner === null) throw new Refused("null inside where");
      if (name === "search") throw new Unsure("search");
      if (name === "near") checkNear(inner, counts);
      else if (name === "children") this.checkChildren(inner, depth, counts);
      else if (name === "not") this.check(inner, depth + 1, counts);
      else if (name === "and" || name === "or") inner.forEach((one) => this.check(one, depth + 1, counts));
      else this.checkOne(name, inner, counts);
    }
    if (counts.conditions > 40 || counts.characters > 3000) throw new Unsure("near a bound");
  }

  checkChildren({ level, ...inner }, depth, counts) {
    if (level === null || level?.length === 0) throw new Refused("no levels of children");
    if (!Object.keys(inner).length) throw new Refused("neither some nor none");
    for (const one of Object.values(inner)) {
      if (one === null) throw new Refused("null inside where");
      if (hasChildren(one)) throw new Refused("children inside of children");
      this.check(one, depth + 1, counts);
      counts.conditions += 1;
    }
  }

  checkOne(name, { languages, ...inner }, counts) {
    if (languages !== undefined) {
      usual(languages);
      if (!Object.keys(inner).length) throw new Unsure("languages alone");
    }
    counts.conditions += Object.keys(inner).length;
    for (const [operator, operand] of Object.entries(inner)) {
      if (operand === null) throw new Refused("null inside where");
      for (const one of strings(operand)) {
        counts.characters += one.length;
        const isOpen = name === "key" ? !isKey(one) && (one || operator !== "startsWith") : name === "path" && !keysOf(one);
        if (isOpen) throw new Unsure(`an odd ${name}`);
      }
      if (Array.isArray(operand) && operand.length > 99) throw new Unsure("many values");
    }
  }

  /** Whether no node of a level can meet a condition, because the level lacks attributes in it. */
  isNeverMet(hierarchy, level, where) {
    const { outcome, lacks } = this.outcome(hierarchy, level, where);
    return outcome === false && lacks;
  }

  /** Whether all nodes of a level meet a condition or none does (null: that depends), and whether for what it lacks. */
  outcome(hierarchy, level, where) {
    const join = (parts, decisive) => {
      const outcomes = parts.map((one) => one.outcome);
      const outcome = outcomes.includes(decisive) ? decisive : outcomes.includes(null) ? null : !decisive;
      return { outcome, lacks: parts.some((one) => one.outcome === outcome && one.lacks) };
    };
    const isAttribute = (name) => Object.values(hierarchy.attributes).some((names) => names.includes(name));
    return join(Object.entries(where).flatMap(([name, inner]) => {
      if (name === "and" || name === "or") return join(inner.map((one) => this.outcome(hierarchy, level, one)), name === "or");
      if (name === "not") {
        const { outcome, lacks } = this.outcome(hierarchy, level, inner);
        return { outcome: outcome === null ? null : !outcome, lacks };
      }
      if (name === "near") {
        const has = hierarchy.attributes[level].includes("latitude");
        return has ? { outcome: null, lacks: false } : { outcome: false, lacks: true };
      }
      if (name === "children") return this.outcomesOfChildren(hierarchy, level, inner);
      if (!isAttribute(name) || hierarchy.attributes[level].includes(name)) return { outcome: null, lacks: false };
      return Object.entries(inner).map(([operator, operand]) => ({ outcome: this.meetsOne("", null, operator, operand), lacks: true }));
    }), false);
  }

  /** None of the children meets a condition where their levels lack attributes, or where there can be no children. */
  outcomesOfChildren(hierarchy, level, { level: levels, ...inner }) {
    const below = (levels ?? hierarchy.levels).filter((one) => hierarchy.under[one].includes(level));
    return Object.entries(inner).map(([name, where]) => {
      const outcomes = below.map((one) => this.outcome(hierarchy, one, where));
      if (outcomes.some(({ outcome }) => outcome !== false)) return { outcome: null, lacks: false };
      return { outcome: name === "none", lacks: !below.length || outcomes.some(({ lacks }) => lacks) };
    });
  }

  meets(hierarchy, node, where) {
    return Object.entries(where).every(([name, inner]) => {
      if (name === "and") return inner.every((one) => this.meets(hierarchy, node, one));
      if (name === "or") return inner.some((one) => this.meets(hierarchy, node, one));
      if (name === "not") return !this.meets(hierarchy, node, inner);
      if (name === "near") return isNear(node, inner);
      if (name === "children") return this.meetsBelow(hierarchy, node, inner);
      if (!Object.keys(inner).length) throw new Unsure("a condition without operators");
      if (name === "key" || name === "path") return this.meetsPlace(name, node, inner);
      const { languages, ...operators } = inner;
      const type = this.typeOf(hierarchy, name);
      const value = this.value(node, name, languages);
      return Object.entries(operators).every(([operator, operand]) => this.meetsOne(type, value, operator, operand));
    });
  }

  /** "`some` is met if at least one of them meets it, `none` if no child does." */
  meetsBelow(hierarchy, node, { level, ...inner }) {
    const children = node.$hierarchy.children(node);
    if (children.some((one) => one.$isDamaged)) throw new Unsure("damaged nodes");
    const counted = children.filter((one) => level?.includes(one.level) ?? true);
    return Object.entries(inner).every(([name, where]) =>
      counted.map((one) => this.meets(hierarchy, one, where)).includes(true) === (name === "some"));
  }

  /** Keys and paths: "exact and in the order of the tree". */
  meetsPlace(name, node, operators) {
    const read = name === "key" ? (text) => [text] : keysOf;
    const keys = read(node[name]);
    return Object.entries(operators).every(([operator, operand]) => {
      if (operator === "in") return operand.some((one) => byKeys(keys, read(one)) === 0);
      const given = read(operand);
      if (operator === "startsWith") {
        if (name === "key") return node.key.startsWith(operand.normalize("NFC"));
        return byKeys(keys.slice(0, given.length), given) === 0;
      }
      const order = byKeys(keys, given);
      return { eq: order === 0, lt: order < 0, lte: order <= 0, gt: order > 0, gte: order >= 0 }[operator];
    });
  }

  meetsOne(type, value, operator, operand) {
    const missing = value === null || value === undefined;
    if (operator === "isNull") return missing === operand;
    if (missing) return operator === "ne";
    const inner = type.startsWith("[") ? type.slice(1, -1) : type;
    const isText = inner === "String" || inner === "Url";
    if (type.startsWith("[")) return value.some((one) => this.equal(inner, one, operand));
    if (operator === "eq") return this.equal(inner, value, operand);
    if (operator === "ne") return !this.equal(inner, value, operand);
    if (operator === "in") return operand.some((one) => this.equal(inner, value, one));
    if (operator === "startsWith" || operator === "contains") {
      if (!isText) throw new Unsure(operator);
      return operator === "contains" ? sure(value).includes(sure(operand)) : sure(value).startsWith(sure(operand));
    }
    const convert = comparable(inner, this.enums);
    const order = compare(convert(value), convert(operand));
    return { lt: order < 0, lte: order <= 0, gt: order > 0, gte: order >= 0 }[operator];
  }

  equal(type, value, operand) {
    if (type === "String" || type === "Url") return value === operand;
    const convert = comparable(type, this.enums);
    return convert(value) === convert(operand);
  }
}
