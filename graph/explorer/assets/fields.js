// Form fields: one for each attribute, for texts in languages, and for paths; what they hold, and the inputs of mutations
// that are made of it.
import { html, useRef, useState } from "./vendor/preact.js";
import { parsedJson } from "./api.js";
import { elementType } from "./hierarchy.js";
import { labelOf, levelWord, NONE } from "./words.js";
/** @import { Api } from "./api" */
/** @import { Attribute, Hierarchy } from "./hierarchy" */
/** @typedef {{language: string, text: string}} Text */

let fields = 0;

const MAX_ROWS = 12;

/** @type {Record<string, string>} */
const HINTS = { DateTime: "A time, such as 2026-10-05T12:30:00Z.", Url: "Such as https://example.com/a." };

/**
 * The types of inputs for scalars; all others are text. So are numbers: an input of numbers makes 1250 of "12,50", and
 * nothing of what it cannot read.
 * @type {Record<string, string>}
 */
const INPUTS = { Date: "date", Url: "url" };
/** The keyboards of numbers that need no minus sign: some have none. @type {Record<string, string>} */
const KEYBOARDS = { Int: "numeric", Long: "numeric", Float: "decimal", Decimal: "decimal" };

// Patterns are Rust's. One with a class or a group that JavaScript reads otherwise is left to the server.
const OTHERWISE = /\\[a-z]|\[\[|&&|--|~~|\(\?[^:]/i;

const WHOLE = /^[+-]?\d+$/;
const NUMERAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const MAX_INT = 2 ** 31 - 1;
const DIGITS = 15; // that every number of JavaScript keeps

/**
 * The field of an attribute; `value` is as `toForm` makes it.
 * @param {{attribute: Attribute, value: any, onChange: (value: any) => void, error?: string, row?: string}} props - `row`
 *   is the beginning of its name where other nodes have such fields
 */
export function AttributeField({ attribute, value, onChange, error, row = "" }) {
  const { type, required, values } = attribute;
  const name = row + attribute.name;
  const label = `${labelOf(attribute)}${required ? " (required)" : ""}`;
  const hint = hintOf(attribute);
  const common = { label, value, onChange, error, hint, name, required };
  const choices = (/** @type {string[][]} */ options) => html`<${Choice} ...${common} options=${[["", NONE], ...options]} />`;
  switch (formOf(attribute)) {
    case "texts": return html`<${Texts} label=${label} texts=${value} onChange=${onChange} error=${error} />`;
    case "enum": return choices((values ?? []).map((one) => [one, levelWord(one)]));
    case "boolean": return choices([["true", "yes"], ["false", "no"]]);
    case "lines": return html`<${Lines} ...${common} hint="${hint} One value a line, or all as a list of JSON." />`;
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
  const [element] = useState(() => elementFor(as, value));
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return html`<div class="write-field">
    <label for=${id}>${label}</label>
    <${element} id=${id} value=${value} autocomplete="off" spellcheck=${false} ...${rest} aria-describedby=${described || undefined}
      aria-invalid=${error ? "true" : undefined} onInput=${(/** @type {any} */ event) => onChange(event.target.value)}>${children}<//>
    ${hint && html`<p class="write-hint" id="${id}-hint">${hint}</p>`}
    ${error && html`<p class="write-error" id="${id}-error">${error}</p>`}
  </div>`;
}

/** The element for a text that is there: an input would lose its line breaks. @param {string} element @param {string} text */
const elementFor = (element, text) => (element === "input" && text.includes("\n") ? "textarea" : element);

/** A field for one of a few values. @param {Parameters<typeof Field>[0] & {options: [string, string][]}} props */
export const Choice = ({ options, ...rest }) => html`<${Field} as="select" ...${rest}>
  ${options.map(([one, text]) => html`<option key=${one} value=${one}>${text}</option>`)}
<//>`;

/** A field for several lines of text. @param {Parameters<typeof Field>[0]} props */
const Lines = (props) => html`<${Field} as="textarea" rows=${Math.min(MAX_ROWS, props.value.split("\n").length + 1)} ...${props} />`;

/**
 * Rows of a language and a text each; an empty text removes a language that was there.
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
      <${elementFor("input", text)} aria-label="Text in ${language || "this language"}" lang=${language} value=${text}
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

/**
 * The rules of a line of text as attributes of an input. Those of numbers and of lengths are the server's: an input with a
 * length cuts off what is pasted.
 * @param {Attribute} attribute
 */
const rulesOf = ({ type, minimum, maximum, pattern }) => ({
  type: INPUTS[type], inputmode: Number(minimum ?? NaN) >= 0 ? KEYBOARDS[type] : undefined,
  ...(type === "Date" && { min: minimum ?? undefined, max: maximum ?? undefined }),
  pattern: pattern && !OTHERWISE.test(pattern) ? pattern : undefined,
});

/** What an attribute is, with the rules that its field does not show by itself. @param {Attribute} attribute */
function hintOf({ description, minimum, maximum, pattern, unique }) {
  const rules = [minimum && `Minimum ${minimum}.`, maximum && `Maximum ${maximum}.`, pattern && `Pattern ${pattern}`, unique && "Unique."];
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
    case "lines": return isNone ? "" : value.every(isLine) ? value.join("\n") : JSON.stringify(value, null, 2);
    case "json": return isNone ? "" : JSON.stringify(value, (_, part) => part?.texts ?? part ?? undefined, 2);
    default: return isNone ? "" : String(value);
  }
}

/** Whether an element of a list is what its line says. @param {unknown} one */
const isLine = (one) => typeof one !== "string" || (one.trim() !== "" && !one.includes("\n") && !isJsonList(one));

/** Whether the text of a list is JSON. @param {string} text */
const isJsonList = (text) => text.trimStart().startsWith("[");

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
      if (isJsonList(form)) return fromJson(form, 'a list such as ["a", "b"]');
      const lines = form.split("\n").filter((/** @type {string} */ one) => one.trim());
      return lines.length ? lines.map((/** @type {string} */ one) => parsed(scalar, scalar === "String" ? one : one.trim())) : null;
    }
    case "json": return form.trim() ? fromJson(form, 'an object such as {"name": "value"}, or a list of these') : null;
    default: return form === "" ? null : parsed(scalar, form);
  }
}

/** A text as JSON. Throws an Error that says what to write. @param {string} text @param {string} example */
function fromJson(text, example) {
  try {
    return parsedJson(text, (numeral) => isLost(numeral) || isRounded(numeral));
  } catch {
    throw new Error(`This is no JSON; write ${example}.`);
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
 * The changes from one list of texts in languages to another; a text of null clears its language. What lacks its language
 * or its text, and a language that stands twice, are changes, too, which the server refuses.
 * @param {Text[]} before
 * @param {Text[]} after
 * @returns {{language: string, text: string | null}[]}
 */
export function changedTexts(before, after) {
  const of = (/** @type {Text[]} */ texts, /** @type {Text} */ one) => texts.filter(({ language }) => language === one.language);
  const filled = after.filter((one) => one.text || (one.language && !of(before, one).length));
  const changed = filled.filter((one) => of(filled, one).length > 1 || of(before, one)[0]?.text !== one.text);
  const removed = before.filter((one) => !of(filled, one).length);
  return [...changed.map(({ language, text }) => ({ language, text })), ...removed.map(({ language }) => ({ language, text: null }))];
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
 * A text as a value of a scalar; those that JSON has no type for, or JavaScript rounds, are the text as it is. Throws an
 * Error for what would become another value.
 * @param {string} scalar
 * @param {string} text
 */
function parsed(scalar, text) {
  if (scalar === "Boolean") {
    if (text !== "true" && text !== "false") throw new Error(`“${text}” is neither true nor false.`);
    return text === "true";
  }
  if (scalar !== "Int" && scalar !== "Float") return text;
  const [numeral, value] = [text.trim(), Number(text)];
  if (scalar === "Int") {
    if (!WHOLE.test(numeral)) throw new Error(`“${text}” is no whole number.`);
    if (value < -MAX_INT - 1 || value > MAX_INT) throw new Error(`“${text}” is not between ${-MAX_INT - 1} and ${MAX_INT}.`);
    return value;
  }
  if (!NUMERAL.test(numeral)) throw new Error(`“${text}” is no number; write one such as 12.5.`);
  if (isLost(numeral)) throw new Error(`“${text}” is too ${value ? "large" : "small"} for a number of this kind.`);
  return value;
}

/** Whether a number would become infinite, or nothing. @param {string} numeral */
const isLost = (numeral) => !Number.isFinite(Number(numeral)) || (Number(numeral) === 0 && /[1-9]/.test(numeral.split(/e/i)[0]));

/** Whether a number has digits that JavaScript does not keep. @param {string} numeral */
const isRounded = (numeral) => numeral.replace(/\D/g, "").length > DIGITS && String(Number(numeral)) !== numeral;
