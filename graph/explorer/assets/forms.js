// Forms of the mutations: for each its fields, and the input that it sends.
import { html } from "./vendor/preact.js";
import { levelOf, levelsBelow, storedAttributes } from "./documents.js";
import { AttributeField, Choice, Field, NodeField, Texts } from "./fields.js";
import { changedTexts, fromForm, mergedTexts, same, toForm, toInput } from "./values.js";
import { fieldWords, levelWord, parentOf } from "./words.js";
/** @import { Hierarchy } from "./api" */
/** @import { Content, Verb } from "./documents_writing" */
/** @import { Row } from "./model" */
/**
 * @typedef {Record<string, any>} Draft - what the fields hold; attributes are in `values`
 * @typedef {{hierarchy: Hierarchy, node: Content | Row | null, rows?: Row[], draft: Draft}} State - `node` as it was read, or
 *   one of the rows that change together
 * @typedef {{title: (what: string) => string, action: string, start: (state: State) => Draft,
 *   Fields: (props: any) => any, input: (state: State) => Record<string, any>}} Form - `input` is that of the mutation,
 *   without the node
 */

/** The error of one field, found before anything is sent. */
export class FieldError extends Error {
  /** @param {string} field @param {string} message */
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

const POLICIES = /** @type {[string, string][]} */ ([
  ["REFUSE", "Only if it has no children"],
  ["CASCADE", "With all descendants"],
  ["REPARENT", "Its children move to its parent"],
]);
const SIDES = /** @type {[string, string][]} */ ([
  ["", "As it comes"], ["first", "First of its level"], ["last", "Last of its level"], ["before", "Before a sibling"], ["after", "After a sibling"],
]);

/** @param {Hierarchy} hierarchy @param {string} level @param {(name: string) => any} valueOf */
const formValues = (hierarchy, level, valueOf) =>
  Object.fromEntries(storedAttributes(levelOf(hierarchy, level)).map((one) => [one.name, toForm(one, valueOf(one.name))]));

const noValue = () => null;

/**
 * The content of a node as what the fields of a new or changed node hold. Throws an Error for a value that was not read:
 * its field would be empty, and empty it.
 * @param {Hierarchy} hierarchy @param {Content} node @returns {Draft}
 */
export const draftOf = (hierarchy, node) => ({
  level: node.level, name: node.name, names: node.names, values: formValues(hierarchy, node.level, (name) => {
    if (node[name] === undefined) throw new Error(`${fieldWords(name)} could not be read, so nothing can be written here. Try again.`);
    return node[name];
  }),
});

/**
 * The attributes whose fields changed, as input. Throws FieldError for a text that is no value of its type.
 * @param {Hierarchy} hierarchy @param {Draft} draft @param {Record<string, any>} old
 */
function changedAttributes(hierarchy, draft, old) {
  /** @type {Record<string, unknown>} */
  const changed = {};
  for (const one of storedAttributes(levelOf(hierarchy, draft.level))) {
    const form = draft.values[one.name];
    if (same(form, old[one.name])) continue;
    try {
      changed[one.name] = toInput(one, form, old[one.name]);
    } catch (error) {
      throw new FieldError(one.name, /** @type {Error} */ (error).message);
    }
  }
  return changed;
}

/** @param {any} props */
function ContentFields({ hierarchy, draft, set, errors }) {
  const setValue = (/** @type {string} */ name) => (/** @type {any} */ value) =>
    set({ values: { ...draft.values, [name]: value } });
  return html`
    <${Field} label="Name" name="name" value=${draft.name} required error=${errors.name} onChange=${(/** @type {string} */ name) => set({ name })} />
    <${Texts} label="Names in languages" texts=${draft.names} error=${errors.names}
      onChange=${(/** @type {any} */ names) => set({ names })} />
    ${storedAttributes(levelOf(hierarchy, draft.level)).map((one) => html`<${AttributeField} key=${one.name}
      attribute=${one} value=${draft.values[one.name]} error=${errors[one.name]} onChange=${setValue(one.name)} />`)}`;
}

/** @type {Record<Verb, Form>} */
export const FORMS = {
  create: {
    title: (path) => (path ? `New node below ${path}` : "New root"),
    action: "Create",
    start: ({ hierarchy, node }) => {
      const level = levelsBelow(hierarchy, node)[0].name;
      return { level, key: "", name: "", names: [], values: formValues(hierarchy, level, noValue) };
    },
    Fields: (props) => {
      const { hierarchy, node, draft, set, errors } = props;
      const options = levelsBelow(hierarchy, node).map((one) => [one.name, levelWord(one.name)]);
      const change = (/** @type {string} */ level) => set({ level, values: formValues(hierarchy, level, noValue) });
      return html`
        ${!draft.id && html`<${Choice} label="Level" value=${draft.level} options=${options} error=${errors.level} onChange=${change} />`}
        <${Field} label="Key" name="key" value=${draft.key} required error=${errors.key}
          hint="Last segment of the path, unique among siblings." onChange=${(/** @type {string} */ key) => set({ key })} />
        <${ContentFields} ...${props} />`;
    },
    input: ({ hierarchy, node, draft }) => {
      const level = levelOf(hierarchy, draft.level);
      const attributes = changedAttributes(hierarchy, draft, formValues(hierarchy, draft.level, noValue));
      return {
        ...(node && { parent: { path: node.path } }), ...(draft.id && { id: draft.id }), key: draft.key, name: draft.name,
        names: changedTexts([], draft.names), level: level.name,
        ...(level.inputField && { attributes: { [level.inputField]: attributes } }),
      };
    },
  },
  update: {
    title: (path) => `Edit ${path}`,
    action: "Write",
    start: ({ hierarchy, node }) => draftOf(hierarchy, /** @type {Content} */ (node)),
    Fields: ContentFields,
    input: ({ hierarchy, node, draft }) => {
      const old = draftOf(hierarchy, /** @type {Content} */ (node));
      const attributes = changedAttributes(hierarchy, draft, old.values);
      const hasNames = !same(draft.names, old.names);
      return {
        ...(draft.name !== old.name && { name: draft.name }),
        ...(hasNames && { names: changedTexts(old.names, draft.names) }),
        ...(Object.keys(attributes).length && { attributes: { [/** @type {string} */ (levelOf(hierarchy, draft.level).inputField)]: attributes } }),
      };
    },
  },
  rename: {
    title: (path) => `Rename ${path}`,
    action: "Rename",
    start: ({ node }) => ({ key: node?.key }),
    Fields: ({ draft, set, errors }) => html`<${Field} label="Key" name="key" value=${draft.key} required error=${errors.key}
      hint="Last segment of the path. Former paths lead to the node." onChange=${(/** @type {string} */ key) => set({ key })} />`,
    input: ({ draft }) => ({ key: draft.key }),
  },
  move: {
    title: (path) => `Move ${path}`,
    action: "Move",
    start: ({ node }) => ({ to: node ? parentOf(node.path) : "", side: "", beside: "" }),
    Fields: ({ api, hierarchy, node, rows, draft, set, errors }) => html`<${NodeField} api=${api} hierarchy=${hierarchy}
        label="New parent" value=${draft.to} error=${errors.to} onChange=${(/** @type {string} */ to) => set({ to })}
        hint=${`Words of its name, or its path.${levelOf(hierarchy, (node ?? rows[0]).level).mayBeRoot ? " Empty for a root." : ""} Former paths lead to the node.`} />
      ${!rows && html`<${Choice} label="Place" value=${draft.side ?? ""} options=${SIDES} error=${errors.side} onChange=${(/** @type {string} */ side) => set({ side })} />`}
      ${["before", "after"].includes(draft.side) && html`<${NodeField} api=${api} hierarchy=${hierarchy} label="Sibling" error=${errors.beside}
        value=${draft.beside || (draft.to && `${draft.to}/`)} onChange=${(/** @type {string} */ beside) => set({ beside })} hint="One of the same level." />`}`,
    input: ({ node, draft: { to, side, beside } }) => {
      const isBeside = side === "before" || side === "after";
      if (isBeside && !beside) throw new FieldError("beside", "Choose a sibling.");
      const isThere = isBeside || (side && to === parentOf(node?.path ?? ""));
      return {
        ...(!isThere && { to: to ? { parent: { path: to } } : { root: true } }),
        ...(side && { position: { [side]: isBeside ? { path: beside } : true } }),
      };
    },
  },
  delete: {
    title: (path) => `Delete ${path}`,
    action: "Delete",
    start: () => ({ policy: "REFUSE" }),
    Fields: ({ draft, set, errors }) => html`<${Choice} label="Delete" value=${draft.policy} options=${POLICIES}
      error=${errors.policy} onChange=${(/** @type {string} */ policy) => set({ policy })} hint="Revisions of deleted nodes are kept." />`,
    input: ({ draft }) => ({ policy: draft.policy }),
  },
  set: {
    title: (what) => `Change a value of ${what}`,
    action: "Write",
    start: (state) => ({ attribute: common(state)[0]?.name ?? "", values: {} }),
    Fields: ({ hierarchy, rows, draft, set, errors }) => {
      const shared = common({ hierarchy, rows });
      const one = shared.find(({ name }) => name === draft.attribute);
      if (!one) return html`<p>These nodes have no attribute in common.</p>`;
      return html`<${Choice} label="Attribute" value=${one.name} options=${shared.map(({ name }) => [name, fieldWords(name)])}
          onChange=${(/** @type {string} */ attribute) => set({ attribute, values: {} })} />
        <${AttributeField} key=${one.name} attribute=${one} value=${draft.values[one.name] ?? toForm(one, null)} error=${errors[one.name]}
          onChange=${(/** @type {any} */ value) => set({ values: { [one.name]: value } })} />`;
    },
    input: ({ hierarchy, node, rows, draft }) => {
      const one = common({ hierarchy, rows }).find(({ name }) => name === draft.attribute);
      if (!one || !node) throw new FieldError("", "Choose nodes that have an attribute in common.");
      const { inputField } = levelOf(hierarchy, node.level);
      try {
        const value = toInput(one, draft.values[one.name] ?? toForm(one, null), toForm(one, null));
        return { attributes: { [/** @type {string} */ (inputField)]: { [one.name]: value } } };
      } catch (error) {
        throw new FieldError(one.name, /** @type {Error} */ (error).message);
      }
    },
  },
};

/** The attributes that all levels of some rows have. @param {Pick<State, "hierarchy" | "rows">} state */
function common({ hierarchy, rows = [] }) {
  const [first, ...others] = [...new Set(rows.map((row) => row.level))].map((level) => storedAttributes(levelOf(hierarchy, level)));
  return (first ?? []).filter((one) => others.every((each) => each.some(({ name, type }) => name === one.name && type === one.type)));
}

/**
 * A draft of an update after somebody else wrote: own changes stay, and everything else becomes theirs.
 * @param {Hierarchy} hierarchy @param {Draft} draft @param {Content} before @param {Content} theirs
 * @param {Set<string>} except the fields that become theirs in any case @returns {Draft}
 */
export function rebased(hierarchy, draft, before, theirs, except) {
  const [old, now] = [draftOf(hierarchy, before), draftOf(hierarchy, theirs)];
  const merged = (/** @type {string} */ name, /** @type {any} */ was, /** @type {any} */ own, /** @type {any} */ is) => {
    if (except.has(name)) return is;
    return Array.isArray(is) ? mergedTexts(was, own, is) : same(own, was) ? is : own;
  };
  return {
    ...draft,
    name: merged("name", old.name, draft.name, now.name),
    names: merged("names", old.names, draft.names, now.names),
    values: Object.fromEntries(
      Object.keys(now.values).map((name) => [name, merged(name, old.values[name], draft.values[name], now.values[name])]),
    ),
  };
}

/** What a node would hold after the update of a draft, as it is shown. @param {Hierarchy} hierarchy @param {Draft} draft */
export const drafted = (hierarchy, draft) => ({
  name: draft.name, names: draft.names,
  ...Object.fromEntries(
    storedAttributes(levelOf(hierarchy, draft.level)).map((one) => [one.name, fromForm(one, draft.values[one.name])]),
  ),
});
