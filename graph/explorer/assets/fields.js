// Form fields: one for each attribute, for texts in languages, and for paths.
import { html, useState } from "./vendor/preact.js";
import { found, Picker } from "./picker.js";
import { formOf } from "./values.js";
import { fieldWords, levelWord } from "./words.js";
/** @import { Api, Hierarchy } from "./api" */
/** @import { Attribute } from "./documents" */
/** @import { Hit } from "./picker" */
/** @import { Text } from "./documents_writing" */

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
 * A label with its input, a hint and an error below it. All other properties are those of the input, which is a line of
 * text unless `as` says another element.
 * @param {{label: string, value: string, onChange: (value: string) => void, hint?: string, error?: string, as?: string, children?: unknown, [attribute: string]: unknown}} props
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
 * The field of an attribute; `value` is as `toForm` makes it.
 * @param {{attribute: Attribute, value: any, onChange: (value: any) => void, error?: string}} props
 */
export function AttributeField({ attribute, value, onChange, error }) {
  const { name, type, required, values } = attribute;
  const label = `${fieldWords(name)}${required ? " (required)" : ""}`;
  const hint = hintOf(attribute);
  const common = { label, value, onChange, error, hint, name, required };
  const choices = (/** @type {string[][]} */ options) => html`<${Choice} ...${common} options=${[["", "–"], ...options]} />`;
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

/** A field for the path of a node, which is picked or typed. @param {Parameters<typeof Field>[0] & {api: Api, hierarchy: Hierarchy}} props */
export const NodeField = ({ api, hierarchy, onChange, ...rest }) => html`<${Picker} as=${Field} isKept find=${(/** @type {string} */ text) => found(api, [hierarchy], text)}
  onText=${onChange} onPick=${(/** @type {Hit} */ { path }) => onChange(path)} ...${rest} />`;
