// Form fields: one for each attribute, for texts in languages, and for paths; what they hold, and the inputs of mutations
// that are made of it.
import { html, useRef, useState } from "./vendor/preact.js";
import { parsedJson } from "./api.js";
import { elementType } from "./hierarchy.js";
import { fieldWords, levelWord, NONE } from "./words.js";
/** @import { Api } from "./api" */
/** @import { Attribute, Hierarchy } from "./hierarchy" */
/** @typedef {{language: string, text: string}} Text */

let fields = 0;

const MAX_ROWS = 12;

/** @type {Record<string, string>} */
const HINTS = { DateTime: "A time, such as 2026-10-05T12:30:00Z.", Url: "Such as https://example.com/a." };

/** The inputs of HTML for scalars; all others have a line of text. @type {Record<string, {type: string, step?: string, min?: string, max?: string}>} */
const INPUTS = {
  Int: { type: "number", step: "1", min: "-2147483648", max: "2147483647" }, Float: { type: "number", step: "any" },
  Decimal: { type: "number", step: "any" }, Date: { type: "date" }, Url: { type: "url" },
};

// Patterns are Rust's. One with a class or a group that JavaScript reads otherwise is left to the server.
const OTHERWISE = /\\[a-z]|\[\[|&&|--|~~|\(\?[^:]/i;

const LONG = 2n ** 63n;

/**
 * The field of an attribute; `value` is as `toForm` makes it.
 * @param {{attribute: Attribute, value: any, onChange: (value: any) => void, error?: string}} props
 */
export function AttributeField({ attribute, value, onChange, error }) {
  const { name, type, required, values } = attribute;
  const label = `${fieldWords(name)}${required ? " (required)" : ""}`;
  const hint = hintOf(attribute);
  const common = { label, value, onChange, error, hint, name, required };
  const choices = (/** @type {string[][]} */ options) => html`<${Choice} ...${common} options=${[["", NONE], ...options]} />`;
  switch (formOf(attribute)) {
    case "texts": return html`<${Texts} label=${label} texts=${value} onChange=${onChange} error=${error} />`;
    case "enum": return choices((values ?? []).map((one) => [one, levelWord(one)]));
    case "boolean": return choices([["true", "yes"], ["false", "no"]]);
    case "lines": return html`<${Lines} ...${common} hint="${hint} One value a line." />`;
    case "json": return html`<${Lines} ...${common} hint="${hint} As JSON." />`;
    case "money": return html`<div class="write-pair">
      <${Field} ...${common} value=${value.amount} onChange=${(/** @type {string} */ amount) => onChange({ ...value, amount })} />
      <${Field} label="Currency" value=${value.currency} onChange=${(/** @type {string} */ currency) => onChange({ ...value, currency })} />
    </div>`;
    default: return html`<${Field} ...${common} ...${rulesOf(attribute)} hint=${`${hint} ${HINTS[type] ?? ""}`} />`;
  }
}

/**
 * A label with its input, a hint and an error below it. All other properties are those of the input, which is a line of
 * text unless `as` says another element.
 * @param {{label: string, value: string, onChange: (value: string) => void, hint?: string, error?: string, as?: string,
 *   children?: unknown, [attribute: string]: unknown}} props
 */
export function Field({ label, value, onChange, hint, error, as = "input", children, ...rest }) {
  const [id] = useState(() => `field-${++fields}`);
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return html`<div class="write-field">
    <label for=${id}>${label}</label>
    <${as} id=${id} value=${value} autocomplete="off" spellcheck=${false} ...${rest} aria-describedby=${described || undefined}
      aria-invalid=${error ? "true" : undefined} onInput=${(/** @type {any} */ event) => onChange(event.target.value)}>${children}<//>
    ${hint && html`<p class="write-hint" id="${id}-hint">${hint}</p>`}
    ${error && html`<p class="write-error" id="${id}-error">${error}</p>`}
  </div>`;
}

/** A field for one of a few values. @param {Parameters<typeof Field>[0] & {options: [string, string][]}} props */
export const Choice = ({ options, ...rest }) => html`<${Field} as="select" ...${rest}>
  ${options.map(([one, text]) => html`<option key=${one} value=${one}>${text}</option>`)}
<//>`;

/** A field for several lines of text. @param {Parameters<typeof Field>[0]} props */
const Lines = (props) => html`<${Field} as="textarea" rows=${Math.min(MAX_ROWS, props.value.split("\n").length + 1)} ...${props} />`;

/**
 * Rows of a language and a text each; an empty text removes the language.
 * @param {{label: string, texts: Text[], onChange: (texts: Text[]) => void, error?: string}} props
 */
export function Texts({ label, texts, onChange, error }) {
  const set = (/** @type {number} */ at, /** @type {Partial<Text>} */ part) =>
    onChange(texts.map((one, place) => (place === at ? { ...one, ...part } : one)));
  return html`<fieldset class="write-texts">
    <legend>${label}</legend>
    ${texts.map(({ language, text }, at) => html`<div class="write-row" key=${at}>
      <input type="text" aria-label="Language" placeholder="de" size="6" value=${language} autocomplete="off"
        onInput=${(/** @type {any} */ event) => set(at, { language: event.target.value })} />
      <input type="text" aria-label="Text in ${language || "this language"}" lang=${language} value=${text}
        autocomplete="off" onInput=${(/** @type {any} */ event) => set(at, { text: event.target.value })} />
      <button type="button" aria-label="Remove ${language || "this row"}"
        onClick=${() => onChange(texts.filter((_, place) => place !== at))}>×</button>
    </div>`)}
    <button type="button" onClick=${() => onChange([...texts, { language: "", text: "" }])}>Add a language</button>
    ${error && html`<p class="write-error" role="alert">${error}</p>`}
  </fieldset>`;
}

/**
 * A field for a path, which proposes the children of what is typed so far.
 * @param {Parameters<typeof Field>[0] & {api: Api, hierarchy: Hierarchy}} props
 */
export function PathField({ api, hierarchy, onChange, ...rest }) {
  const [found, setFound] = useState(/** @type {{path: string, name: string}[]} */ ([]));
  const turn = useRef(0);
  const [list] = useState(() => `paths-${++fields}`);
  const typed = async (/** @type {string} */ text) => {
    onChange(text);
    const mine = ++turn.current;
    const end = text.lastIndexOf("/");
    if (end < 1) return;
    const start = text.slice(end + 1).replaceAll(/%2F/gi, "/").replaceAll("%25", "%");
    const answer = await api.ask(childrenWith(hierarchy), { path: text.slice(0, end), start, first: 20 }).catch(() => null);
    if (mine === turn.current) setFound(answer?.data?.node?.children?.nodes ?? []);
  };
  return html`<${Field} list=${list} onChange=${typed} ...${rest} />
    <datalist id=${list}>${found.map((one) => html`<option key=${one.path} value=${one.path}>${one.name}</option>`)}</datalist>`;
}

/** Children whose keys begin with a text. @param {Hierarchy} hierarchy */
export const childrenWith = (hierarchy) => `query childrenWith($path: Path!, $start: String!, $first: Int!) {
  node: ${hierarchy.field}(path: $path) {
    children(first: $first, where: { key: { startsWith: $start } }, orderBy: { field: KEY }) { nodes { path name } }
  }
}`;

/** The rules of a line of text as attributes of an input; a Long is text, since inputs of numbers round it. @param {Attribute} attribute */
const rulesOf = ({ type, minimum, maximum, maxLength, pattern }) => ({
  ...INPUTS[type],
  ...(minimum && { min: minimum }), ...(maximum && { max: maximum }), maxlength: maxLength ?? undefined,
  pattern: pattern && !OTHERWISE.test(pattern) ? pattern : undefined,
});

/** What an attribute is, with the rules that its field does not show by itself. @param {Attribute} attribute */
function hintOf({ description, minimum, maximum, pattern }) {
  const rules = [minimum && `Minimum ${minimum}.`, maximum && `Maximum ${maximum}.`, pattern && `Pattern ${pattern}`];
  return [description, ...rules].filter(Boolean).join(" ");
}

/**
 * The kind of form that an attribute has: "texts", "money", "enum", "boolean", "lines" for lists, "json" or "line".
 * @param {Attribute} attribute
 */
function formOf({ type, selection, values }) {
  if (type.startsWith("[")) return selection ? "json" : "lines";
  if (type === "Localized") return "texts";
  if (type === "Money") return "money";
  if (selection) return "json";
  return values ? "enum" : type === "Boolean" ? "boolean" : "line";
}

// -- what fields hold -------------------------------------------------------------------------------------------------

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
 * @param {Attribute} attribute
 * @param {any} form
 * @param {any} old
 * @returns {any}
 */
export function toInput(attribute, form, old) {
  const scalar = elementType(attribute.type);
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
 * @param {Attribute} attribute
 * @param {any} form
 * @returns {any}
 */
export function fromForm(attribute, form) {
  if (formOf(attribute) === "texts") return { texts: form };
  try {
    return toInput(attribute, form, form);
  } catch {
    return form;
  }
}

/** Whether two contents of forms are the same. @param {any} one @param {any} other */
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * The changes from one list of texts in languages to another; a text of null clears its language.
 * @param {Text[]} before
 * @param {Text[]} after
 */
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
 * @param {Text[]} before
 * @param {Text[]} mine
 * @param {Text[]} theirs
 * @returns {Text[]}
 */
export function mergedTexts(before, mine, theirs) {
  const changed = changedTexts(before, mine);
  const untouched = theirs.filter((one) => !changed.some((other) => other.language === one.language));
  return [...untouched, ...changed.flatMap(({ language, text }) => (text === null ? [] : [{ language, text }]))];
}

/**
 * A text as a value of a scalar; those that JSON has no type for, or JavaScript rounds, are texts.
 * @param {string} scalar
 * @param {string} text
 * @param {Attribute} attribute
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
