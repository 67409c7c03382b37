// Format of values: numbers, dates and times as people read them, the same wherever the page shows them.
import { levelWord, plural } from "./words.js";

// Groups of digits begin at five digits, since years have four.
const NUMBER = new Intl.NumberFormat("en", { useGrouping: "min2", maximumFractionDigits: 20 });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const DISTANCE = new Intl.NumberFormat("en", { style: "unit", unit: "kilometer", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const NUMERAL = /^([+-]?\d{1,40})(\.\d+)?$/;
const MAX_WRITTEN_OUT = 1e15; // larger floats would be shown with digits that they do not have

/** @param {number | bigint} value */
export const number = (value) =>
  typeof value === "number" && Math.abs(value) >= MAX_WRITTEN_OUT ? String(value) : NUMBER.format(value);

/** @param {number} count @param {string} word */
export const quantity = (count, word) => `${number(count)} ${count === 1 ? word : plural(word)}`;

/** A number that is text since JavaScript would round it, with all its digits. @param {string} text */
export function numeral(text) {
  const [, whole, fraction = ""] = NUMERAL.exec(text) ?? [];
  return whole === undefined ? text : `${whole === "-0" ? "-0" : NUMBER.format(BigInt(whole.replace("+", "")))}${fraction}`;
}

/** A point in time. @param {string} text of RFC 3339 */
export const time = (text) => written(TIME, text);

/** A date of the calendar. @param {string} text of RFC 3339 */
export const day = (text) => written(DAY, text);

/** @param {number} kilometers */
export const distance = (kilometers) => DISTANCE.format(kilometers);

/** @param {Intl.DateTimeFormat} format @param {string} text */
function written(format, text) {
  const date = new Date(text);
  return Number.isNaN(date.valueOf()) ? text : format.format(date);
}

/**
 * A value of a scalar or an enum as people read it.
 * @param {string | number | boolean} value @param {string} type its name, "" where that is not known
 */
export function formatted(value, type) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return number(value);
  if (type === "Long" || type === "Decimal") return numeral(value);
  if (type === "DateTime") return time(value);
  if (type === "Date") return day(value);
  const isEnum = !["", "String", "Url"].includes(type) && /^[A-Z][A-Z0-9_]*$/.test(value);
  return isEnum ? levelWord(value) : value;
}
