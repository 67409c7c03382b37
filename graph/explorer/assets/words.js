// Words, numbers, times and values of attributes as people read them, the same wherever the page shows them.
import { html } from "./vendor/preact.js";
import { Failure } from "./api.js";
import { elementType } from "./hierarchy.js";

/** What stands for no value. */
export const NONE = "–";

// Groups of digits begin at five digits, since years have four.
const NUMBER = new Intl.NumberFormat("en", { useGrouping: "min2", maximumFractionDigits: 20 });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const DISTANCE = new Intl.NumberFormat("en", { style: "unit", unit: "kilometer", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const NUMERAL = /^([+-]?\d{1,40})(\.\d+)?$/;
const ACRONYM = /\b[A-Za-z]*[A-Z][A-Za-z]*[A-Z][A-Za-z]*\b/g;
const MAX_WRITTEN_OUT = 1e15; // larger floats would be shown with digits that they do not have

/** A level as a word: POSTAL_CODE is "postal code". @param {string} level */
export const levelWord = (level) => level.toLowerCase().replaceAll("_", " ");

/** An English plural. @param {string} word */
export function plural(word) {
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return /(s|x|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
}

/**
 * The name of an attribute as words, with the capitals that its description has: `ean`, "EAN of the article", is "EAN".
 * @param {{name: string, description?: string}} attribute
 */
export function labelOf({ name, description = "" }) {
  const capitals = new Map((description.match(ACRONYM) ?? []).map((one) => [one.toLowerCase(), one]));
  return fieldWords(name).replace(/[A-Za-z]+/g, (word) => capitals.get(word.toLowerCase()) ?? word);
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

/** @param {number | bigint} value */
export const number = (value) =>
  typeof value === "number" && Math.abs(value) >= MAX_WRITTEN_OUT ? String(value) : NUMBER.format(value);

/** @param {number} count @param {string} word */
export const quantity = (count, word) => `${number(count)} ${count === 1 ? word : plural(word)}`;

/** A point in time. @param {string} text of RFC 3339 */
export const time = (text) => written(TIME, text);

/** @param {number} kilometers */
export const distance = (kilometers) => DISTANCE.format(kilometers);

/**
 * A value of a scalar or an enum as people read it.
 * @param {string | number | boolean} value @param {string} type its name, "" where that is not known
 */
export function formatted(value, type) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return number(value);
  if (type === "Long" || type === "Decimal") return numeral(value);
  if (type === "DateTime") return time(value);
  if (type === "Date") return written(DAY, value);
  const isEnum = !["", "String", "Url"].includes(type) && /^[A-Z][A-Z0-9_]*$/.test(value);
  return isEnum ? levelWord(value) : value;
}

/**
 * A value of an attribute: all are text, and only addresses of the web become links.
 * @param {{value: any, type: string}} props `type` as the schema lists it, such as "[String!]"
 */
export function Value({ value, type }) {
  if (value === null || value === undefined) return html`<span class="quiet">${NONE}</span>`;
  if (value instanceof Failure) return html`<span class="failed" title=${value.message}>failed: ${value.message}</span>`;
  if (Array.isArray(value)) return html`<${Values} values=${value} type=${elementType(type)} />`;
  if (typeof value === "object") return html`<${ObjectValue} value=${value} />`;
  if (type === "DateTime") return html`<time datetime=${value} title=${value}>${formatted(value, type)}</time>`;
  if (type === "Url" && /^https?:\/\//i.test(value)) return html`<a href=${value} rel="noopener noreferrer" target="_blank">${value}</a>`;
  return formatted(value, type);
}

/** @param {{values: any[], type: string}} props */
function Values({ values, type }) {
  if (!values.length) return html`<span class="quiet">none</span>`;
  const isShort = values.every((one) => typeof one !== "object");
  const shown = values.map((one) => html`<li><${Value} value=${one} type=${type} /></li>`);
  return html`<ul class=${isShort ? "values" : "values long"}>${shown}</ul>`;
}

/** Money, a text in languages, or a nested value. @param {{value: Record<string, any>}} props */
function ObjectValue({ value }) {
  if (value.currency !== undefined) return `${formatted(value.amount, "Decimal")} ${value.currency}`;
  const texts = value.texts?.map((/** @type {any} */ one) => [languageWord(one.language), one.text, one.language]);
  const parts = texts ?? Object.entries(value).filter(([, part]) => part !== null);
  return html`<dl class="parts">${parts.map((/** @type {any[]} */ [name, part, language]) => html`
    <div key=${name}><dt>${name}</dt><dd lang=${language}><${Value} value=${part} type="" /></dd></div>`)}</dl>`;
}

/** A number that is text since JavaScript would round it, with all its digits. @param {string} text */
function numeral(text) {
  const [, whole, fraction = ""] = NUMERAL.exec(text) ?? [];
  return whole === undefined ? text : `${whole === "-0" ? "-0" : NUMBER.format(BigInt(whole.replace("+", "")))}${fraction}`;
}

/** @param {Intl.DateTimeFormat} format @param {string} text */
function written(format, text) {
  const date = new Date(text);
  return Number.isNaN(date.valueOf()) ? text : format.format(date);
}
