// Values of attributes as people read them; all are text, and only addresses of the web become links.
import { html } from "./vendor/preact.js";
import { formatted } from "./format.js";
import { languageWord } from "./words.js";

/** @param {{value: any, type: string}} props `type` as the schema lists it, such as "[String!]" */
export function Value({ value, type }) {
  if (value === null || value === undefined) return html`<span class="quiet">–</span>`;
  if (Array.isArray(value)) return html`<${Values} values=${value} type=${type.replace(/[[\]!]/g, "")} />`;
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
