// Values of attributes: as text, as the content of a form, and as the input of a mutation.
import { parsedJson } from "./api.js";
import { storedAttributes } from "./documents.js";
import { formatted } from "./format.js";
import { fieldWords } from "./words.js";
/** @import { Attribute, Level } from "./documents" */
/** @import { Text } from "./documents_writing" */
/**
 * @typedef {{label: string, field: string, before: string, after: string}} Difference
 */

/** What stands for no value. */
export const NONE = "–";

/**
 * A value as text; a dash where there is none.
 * @param {any} value @param {(value: any, type: string) => string} scalar @param {string} [type] @returns {string}
 */
function textOf(value, scalar, type = "") {
  if (value === null || value === undefined || value === "") return NONE;
  const element = type.replace(/[[\]!]/g, "");
  const part = (/** @type {any} */ one) => textOf(one, scalar, typeof value === "object" && !Array.isArray(value) ? "" : element);
  if (Array.isArray(value)) return value.length ? value.map(part).join(", ") : NONE;
  if (typeof value !== "object") return scalar(value, element);
  if (value.texts) return value.texts.map((/** @type {Text} */ one) => `${one.language}: ${one.text}`).join("; ") || NONE;
  if ("currency" in value) return `${scalar(value.amount, "Decimal")} ${value.currency}`;
  return Object.entries(value).map(([name, one]) => `${name}: ${part(one)}`).join("; ");
}

/**
 * What differs between two contents of a node, such as two revisions: name, names in languages and attributes.
 * @param {Level} level @param {any} before @param {any} after @returns {Difference[]}
 */
export function differences(level, before, after) {
  const languages = [...new Set([...before.names, ...after.names].map((one) => one.language))].sort();
  const text = (/** @type {any} */ node, /** @type {string} */ language) =>
    node.names.find((/** @type {Text} */ one) => one.language === language)?.text;
  const rows = [
    { label: "Name", field: "name", type: "String", before: before.name, after: after.name },
    ...languages.map((one) => ({ label: `Name (${one})`, field: "names", type: "String", before: text(before, one), after: text(after, one) })),
    ...storedAttributes(level).map(({ name, type }) => ({ label: fieldWords(name), field: name, type, before: before[name], after: after[name] })),
  ];
  return rows.map(differenceOf).filter((row) => row.before !== row.after);
}

/** @param {{label: string, field: string, type: string, before: any, after: any}} row @returns {Difference} */
function differenceOf({ label, field, type, before, after }) {
  const [was, is] = [before, after].map((one) => textOf(one, formatted, type));
  if (was !== is) return { label, field, before: was, after: is };
  // Two times of one minute are shown alike, and differ nevertheless.
  return { label, field, before: textOf(before, String), after: textOf(after, String) };
}

/** The kind of form that an attribute has: "texts", "money", "enum", "boolean", "lines" for lists, "json" or "line". @param {Attribute} attribute */
export function formOf({ type, selection, values }) {
  if (type.startsWith("[")) return selection ? "json" : "lines";
  if (type === "Localized") return "texts";
  if (type === "Money") return "money";
  if (selection) return "json";
  return values ? "enum" : type === "Boolean" ? "boolean" : "line";
}

/** A value as the content of its form. @param {Attribute} attribute @param {any} value @returns {any} */
export function toForm(attribute, value) {
  const isNone = value === null || value === undefined;
  switch (formOf(attribute)) {
    case "texts": return isNone ? [] : value.texts.map((/** @type {Text} */ one) => ({ language: one.language, text: one.text }));
    case "money": return isNone ? { amount: "", currency: "" } : { amount: value.amount, currency: value.currency };
    case "lines": return isNone ? "" : value.join("\n");
    case "json": return isNone ? "" : JSON.stringify(value, (_, part) => part?.texts ?? part ?? undefined, 2);
    default: return isNone ? "" : String(value);
  }
}

/**
 * The input of a mutation for the content of a form; null clears the value. `old` is the content of the form before.
 * Throws an Error with a sentence for what is no value of the type.
 * @param {Attribute} attribute @param {any} form @param {any} old @returns {any}
 */
export function toInput(attribute, form, old) {
  const scalar = attribute.type.replace(/[[\]!]/g, "");
  switch (formOf(attribute)) {
    case "texts": return changedTexts(old, form);
    case "money": return form.amount || form.currency ? { ...form } : null;
    case "lines": {
      const lines = form.split("\n").map((/** @type {string} */ one) => one.trim()).filter(Boolean);
      return lines.length ? lines.map((/** @type {string} */ one) => parsed(scalar, one, attribute)) : null;
    }
    case "json":
      try {
        return form.trim() ? parsedJson(form) : null;
      } catch {
        throw new Error('This is no JSON; write an object such as {"name": "value"}, or a list of these.');
      }
    default: return form === "" ? null : parsed(scalar, form, attribute);
  }
}

/**
 * The content of a form as it is shown; the text itself where it is no value of its type.
 * @param {Attribute} attribute @param {any} form @returns {any}
 */
export function fromForm(attribute, form) {
  if (formOf(attribute) === "texts") return { texts: form };
  try {
    return toInput(attribute, form, form);
  } catch {
    return form;
  }
}

/** The changes from one list of texts in languages to another; a text of null clears its language. @param {Text[]} before @param {Text[]} after */
export function changedTexts(before, after) {
  const filled = after.filter((one) => one.language && one.text);
  const isIn = (/** @type {Text[]} */ texts, /** @type {Text} */ one) =>
    texts.some((other) => other.language === one.language && other.text === one.text);
  const removed = before.filter((one) => !filled.some((other) => other.language === one.language));
  return [
    ...filled.filter((one) => !isIn(before, one)).map(({ language, text }) => ({ language, text })),
    ...removed.map(({ language }) => ({ language, text: null })),
  ];
}

/**
 * Texts that somebody else wrote, with the own changes made to them.
 * @param {Text[]} before @param {Text[]} mine @param {Text[]} theirs @returns {Text[]}
 */
export function mergedTexts(before, mine, theirs) {
  const changed = changedTexts(before, mine);
  const untouched = theirs.filter((one) => !changed.some((other) => other.language === one.language));
  return [...untouched, ...changed.flatMap(({ language, text }) => (text === null ? [] : [{ language, text }]))];
}

const LONG = 2n ** 63n;

/**
 * A text as a value of a scalar; those that JSON has no type for, or JavaScript rounds, are texts.
 * @param {string} scalar @param {string} text @param {Attribute} attribute
 */
function parsed(scalar, text, attribute) {
  if (scalar === "Boolean") return text === "true";
  if (!["Int", "Long", "Float"].includes(scalar)) return text;
  const number = Number(text);
  const isWhole = /^[+-]?\d+$/.test(text.trim());
  if (Number.isNaN(number) || (scalar !== "Float" && !isWhole)) {
    throw new Error(`“${text}” is no ${scalar === "Float" ? "number" : "whole number"}.`);
  }
  if (scalar !== "Long") return number;
  const long = BigInt(text.trim().replace("+", ""));
  const [least, most] = [BigInt(attribute.minimum ?? -LONG), BigInt(attribute.maximum ?? LONG - 1n)];
  if (long < least) throw new Error(`The least value is ${least}.`);
  if (long > most) throw new Error(`The greatest value is ${most}.`);
  return String(long);
}

/** Whether two contents of forms are the same. @param {any} one @param {any} other */
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
