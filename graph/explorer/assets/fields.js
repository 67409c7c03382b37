// Form fields: one for each attribute, for texts in languages, and for paths.
import { html, useRef, useState } from "./vendor/preact.js";
import { childrenFrom } from "./documents_writing.js";
import { formOf } from "./values.js";
import { fieldWords, levelWord } from "./words.js";

/** @typedef {import("./documents_writing.js").Text} Text */

let fields = 0;

const MAX_ROWS = 12;

/** @type {Record<string, string>} */
const HINTS = { DateTime: "A time, such as 2026-10-05T12:30:00Z.", Url: "Such as https://example.com/a." };

/** The inputs of HTML for scalars; all others have a line of text. @type {Record<string, {type: string, step?: string}>} */
const INPUTS = {
  Int: { type: "number", step: "1" }, Long: { type: "number", step: "1" }, Float: { type: "number", step: "any" },
  Decimal: { type: "number", step: "any" }, Date: { type: "date" }, Url: { type: "url" },
};

// Patterns are Rust's. One with a class or a group that JavaScript reads otherwise is left to the server.
const OTHERWISE = /\\[a-z]|\[\[|&&|--|~~|\(\?[^:]/i;

/** The rules of an attribute as attributes of an input. @param {import("./documents").Attribute} attribute */
const rulesOf = ({ name, type, required, minimum, maximum, maxLength, pattern }) => ({
  name, required, min: minimum ?? undefined, max: maximum ?? undefined, maxlength: maxLength ?? undefined,
  pattern: pattern && !OTHERWISE.test(pattern) ? pattern : undefined, ...INPUTS[type],
});

/** The rules of an attribute that a field does not show by itself. @param {import("./documents").Attribute} attribute */
function rulesText({ minimum, maximum, pattern }) {
  const rules = [minimum && `Minimum ${minimum}.`, maximum && `Maximum ${maximum}.`, pattern && `Pattern ${pattern}`];
  return rules.filter(Boolean).join(" ");
}

/** @param {any} event */
const valueOf = (event) => event.target.value;

/**
 * A label with its input, a hint and an error below it.
 * @param {{label: string, hint?: string, error?: string, input: (attributes: Record<string, any>) => any}} props
 */
export function Field({ label, hint, error, input }) {
  const [id] = useState(() => `field-${++fields}`);
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return html`<div class="write-field">
    <label for=${id}>${label}</label>
    ${input({ id, "aria-describedby": described || undefined, "aria-invalid": error ? "true" : undefined })}
    ${hint && html`<p class="write-hint" id="${id}-hint">${hint}</p>`}
    ${error && html`<p class="write-error" id="${id}-error">${error}</p>`}
  </div>`;
}

/**
 * A field for a line of text.
 * @param {{label: string, value: string, onChange: (value: string) => void, hint?: string, error?: string,
 *   name?: string, required?: boolean}} props - and other attributes of the input
 */
export const Line = ({ label, value, onChange, hint, error, ...rest }) => html`<${Field} label=${label} hint=${hint}
  error=${error} input=${(/** @type {any} */ given) => html`<input ...${given} type="text" ...${rest} value=${value}
    autocomplete="off" spellcheck=${false} onInput=${(/** @type {any} */ event) => onChange(valueOf(event))} />`} />`;

/**
 * A field for one of a few values.
 * @param {{label: string, value: string, options: [string, string][], onChange: (value: string) => void,
 *   hint?: string, error?: string, name?: string, required?: boolean}} props
 */
export const Choice = ({ label, value, options, onChange, hint, error, name, required }) => html`<${Field} label=${label} hint=${hint}
  error=${error} input=${(/** @type {any} */ given) => html`<select ...${given} name=${name} required=${required} value=${value}
    onChange=${(/** @type {any} */ event) => onChange(valueOf(event))}>
    ${options.map(([one, text]) => html`<option key=${one} value=${one}>${text}</option>`)}
  </select>`} />`;

/**
 * A field for several lines of text.
 * @param {{label: string, value: string, onChange: (value: string) => void, hint?: string, error?: string, name?: string,
 *   required?: boolean}} props
 */
const Lines = ({ label, value, onChange, hint, error, name, required }) => html`<${Field} label=${label} hint=${hint} error=${error}
  input=${(/** @type {any} */ given) => html`<textarea ...${given} name=${name} required=${required} rows=${Math.min(MAX_ROWS, value.split("\n").length + 1)} spellcheck=${false} value=${value}
    onInput=${(/** @type {any} */ event) => onChange(valueOf(event))} />`} />`;

/**
 * The field of an attribute; `value` is as `toForm` makes it.
 * @param {{attribute: import("./documents").Attribute, value: any, onChange: (value: any) => void,
 *   error?: string}} props
 */
export function AttributeField({ attribute, value, onChange, error }) {
  const { name, type, required, values } = attribute;
  const description = `${attribute.description} ${rulesText(attribute)}`.trim();
  const label = `${fieldWords(name)}${required ? " (required)" : ""}`;
  const kind = formOf(attribute);
  const plain = { label, value, onChange, error, hint: description, name, required };
  if (kind === "texts") return html`<${Texts} label=${label} texts=${value} onChange=${onChange} error=${error} />`;
  if (kind === "enum") return html`<${Choice} ...${plain} options=${[["", "–"], ...(values ?? []).map((one) => [one, levelWord(one)])]} />`;
  if (kind === "boolean") return html`<${Choice} ...${plain} options=${[["", "–"], ["true", "yes"], ["false", "no"]]} />`;
  if (kind === "lines") return html`<${Lines} ...${plain} hint="${description} One value a line." />`;
  if (kind === "json") return html`<${Lines} ...${plain} hint="${description} As JSON." />`;
  if (kind === "money") return html`<div class="write-pair">
    <${Line} label=${label} value=${value.amount} error=${error} hint=${description}
      onChange=${(/** @type {string} */ amount) => onChange({ ...value, amount })} />
    <${Line} label="Currency" value=${value.currency}
      onChange=${(/** @type {string} */ currency) => onChange({ ...value, currency })} />
  </div>`;
  return html`<${Line} ...${plain} ...${rulesOf(attribute)} hint=${`${description} ${HINTS[type] ?? ""}`} />`;
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
        onInput=${(/** @type {any} */ event) => set(at, { language: valueOf(event) })} />
      <input type="text" aria-label="Text in ${language || "this language"}" lang=${language} value=${text}
        autocomplete="off" onInput=${(/** @type {any} */ event) => set(at, { text: valueOf(event) })} />
      <button type="button" aria-label="Remove ${language || "this row"}"
        onClick=${() => onChange(texts.filter((_, place) => place !== at))}>×</button>
    </div>`)}
    <button type="button" onClick=${() => onChange([...texts, { language: "", text: "" }])}>Add a language</button>
    ${error && html`<p class="write-error" role="alert">${error}</p>`}
  </fieldset>`;
}

/**
 * A field for a path, which proposes the children of what is typed so far.
 * @param {{api: import("./api").Api, hierarchy: import("./documents").Hierarchy,
 *   label: string, value: string, onChange: (value: string) => void, hint?: string, error?: string}} props
 */
export function PathField({ api, hierarchy, label, value, onChange, hint, error }) {
  const [found, setFound] = useState(/** @type {{path: string, name: string}[]} */ ([]));
  const turn = useRef(0);
  const [list] = useState(() => `paths-${++fields}`);
  const typed = async (/** @type {string} */ text) => {
    onChange(text);
    const mine = ++turn.current;
    const end = text.lastIndexOf("/");
    if (end < 1) return;
    const variables = { path: text.slice(0, end), from: text.slice(end + 1) || null, first: 20 };
    const answer = await api.ask(childrenFrom(hierarchy), variables).catch(() => null);
    if (mine === turn.current) setFound(answer?.data?.node?.children?.nodes ?? []);
  };
  return html`<${Field} label=${label} hint=${hint} error=${error} input=${(/** @type {any} */ given) => html`
    <input ...${given} type="text" list=${list} value=${value} autocomplete="off" spellcheck=${false}
      onInput=${(/** @type {any} */ event) => typed(valueOf(event))} />
    <datalist id=${list}>${found.map((one) => html`<option key=${one.path} value=${one.path}>${one.name}</option>`)}
    </datalist>`} />`;
}
