// Forms of the mutations: for each its fields, its document and the variables that it sends; the content of a node as their
// drafts, and what differs between two contents.
import { html, useEffect, useState } from "./vendor/preact.js";
import { AttributeField, changedTexts, Choice, Field, fromForm, mergedTexts, PathField, same, Texts, toForm, toInput } from "./fields.js";
import { elementType, levelOf, levelsBelow, parentOf, storedAttributes } from "./hierarchy.js";
import { formatted, labelOf, levelWord, NONE } from "./words.js";
/** @import { Text } from "./fields" */
/** @import { Attribute, Hierarchy, Level } from "./hierarchy" */
/** @typedef {"create" | "update" | "rename" | "move" | "reorder" | "delete" | "restore"} Verb */
/** A node with its attributes.
 * @typedef {{id: string, path: string, key: string, name: string, names: Text[], level: string, revision: number,
 *   changedBy: string | null, descendantCount: number, [attribute: string]: any}} Content */
/** @typedef {{id: string, from: string, to: string | null, state: string, reason: string | null, nodes: number,
 *   written: number}} Move */
/** @typedef {{nodes: number, transactions: number, writeUnits: number}} Plan */
/** @typedef {{code: string, message: string, field: string[] | null, edit?: number | null}} Fault */
/** @typedef {{label: string, before: string, after: string}} Difference */
/**
 * @typedef {Record<string, any>} Draft - what the fields hold; attributes are in `values`
 * @typedef {{hierarchy: Hierarchy, node: Content | null, draft: Draft}} State - `node` as it was read
 * @typedef {{title: (path: string) => string, action: string, start: (state: State) => Draft,
 *   Fields: (props: any) => any, kind?: string,
 *   input: (state: State) => Record<string, unknown>}} Form - `kind` is the mutation where that is not named like the form
 */

const MOVE = "id from to state reason nodes written";
const CONTENT = "id path key name names { language text } level revision changedBy";

const POLICIES = /** @type {[string, string][]} */ ([
  ["REFUSE", "Only if it has no children"],
  ["CASCADE", "With all descendants"],
  ["REPARENT", "Its children move to its parent"],
]);
const SIDES = /** @type {[string, string][]} */ ([
  ["first", "First"], ["last", "Last"], ["before", "Before"], ["after", "After"],
]);
const MAX_SIBLINGS = 100;

/** @type {Record<Verb, Form>} */
export const FORMS = {
  create: {
    title: (path) => (path ? `New node below ${path}` : "New root"),
    action: "Create",
    start: ({ hierarchy, node }) => newDraft(hierarchy, levelsBelow(hierarchy, node)[0].name),
    Fields: (props) => {
      const { hierarchy, node, draft, set, errors } = props;
      const options = levelsBelow(hierarchy, node).map((one) => [one.name, levelWord(one.name)]);
      const change = (/** @type {string} */ level) => set({ level, values: formValues(hierarchy, level) });
      return html`
        <${Choice} label="Level" value=${draft.level} options=${options} error=${errors.level} onChange=${change} />
        <${Field} label="Key" name="key" value=${draft.key} required error=${errors.key}
          hint="Last segment of the path, unique among siblings." onChange=${(/** @type {string} */ key) => set({ key })} />
        <${ContentFields} ...${props} />`;
    },
    input: ({ hierarchy, node, draft }) => {
      const attributes = changedAttributes(hierarchy, draft, formValues(hierarchy, draft.level));
      return {
        ...(node && { parent: { id: node.id } }), key: draft.key, name: draft.name,
        names: changedTexts([], draft.names),
        attributes: { [levelOf(hierarchy, draft.level).inputField]: attributes },
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
        ...(Object.keys(attributes).length && { attributes: { [levelOf(hierarchy, draft.level).inputField]: attributes } }),
      };
    },
  },
  rename: {
    title: (path) => `Rename ${path}`,
    action: "Rename",
    start: ({ node }) => ({ key: node?.key }),
    Fields: ({ draft, set, errors }) => html`<${Field} label="Key" name="key" value=${draft.key} required error=${errors.key}
      hint="Last segment of the path. Former paths lead to the node." onChange=${(/** @type {string} */ key) => set({ key })} />`,
    kind: "move",
    input: ({ draft }) => ({ key: draft.key }),
  },
  move: {
    title: (path) => `Move ${path}`,
    action: "Move",
    start: ({ node }) => ({ to: node ? parentOf(node.path) : "" }),
    Fields: ({ api, hierarchy, node, draft, set, errors }) => html`<${PathField} api=${api} hierarchy=${hierarchy}
      label="New parent" value=${draft.to} error=${errors.to} onChange=${(/** @type {string} */ to) => set({ to })}
      hint=${`Path of the new parent.${levelOf(hierarchy, node.level).mayBeRoot ? " Empty for a root." : ""} Former paths lead to the node.`} />`,
    input: ({ draft: { to } }) => ({ to: to ? { parent: { path: to } } : { root: true } }),
  },
  reorder: {
    title: (path) => `Order of ${path}`,
    action: "Reorder",
    start: () => ({ side: "first", beside: "" }),
    Fields: ReorderFields,
    kind: "move",
    input: ({ draft: { side, beside } }) => {
      const isBeside = side === "before" || side === "after";
      if (isBeside && !beside) throw new FieldErrors({ beside: "Choose a sibling." });
      return { position: { [side]: isBeside ? { path: beside } : true } };
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
  restore: {
    title: (path) => `Restore ${path}`,
    action: "Restore",
    start: ({ node }) => ({ key: node?.key, to: "" }),
    Fields: ({ api, hierarchy, draft, set, errors }) => html`
      <${Field} label="Key" name="key" value=${draft.key} required error=${errors.key}
        hint="Last segment of the path, unique among siblings." onChange=${(/** @type {string} */ key) => set({ key })} />
      <${PathField} api=${api} hierarchy=${hierarchy} label="New parent" value=${draft.to} error=${errors.to}
        hint="Path of the new parent. Empty for the former one." onChange=${(/** @type {string} */ to) => set({ to })} />`,
    input: ({ node, draft: { key, to } }) => ({
      id: node?.id, ...(key !== node?.key && { key }), ...(to && { to: { parent: { path: to } } }),
    }),
  },
};

/** Sentences by field, "" for the form: what is wrong before anything is sent. */
export class FieldErrors extends Error {
  /** @param {Record<string, string>} errors */
  constructor(errors) {
    super();
    this.errors = errors;
  }
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

/** @param {any} props */
function ReorderFields({ api, hierarchy, node, draft, set, errors }) {
  const [nodes, setNodes] = useState(/** @type {{path: string, name: string}[]} */ ([]));
  useEffect(() => {
    const [parent, variables] = [parentOf(node.path), { level: node.level, first: MAX_SIBLINGS + 1 }];
    const asked = parent ? api.ask(childrenOfLevel(hierarchy), { ...variables, path: parent }) : api.ask(rootsOfLevel(hierarchy), variables);
    asked.then((/** @type {any} */ { data }) => {
      const listed = (data.list ?? data.node?.list)?.nodes ?? [];
      setNodes(listed.filter((/** @type {{path: string}} */ one) => one.path !== node.path).slice(0, MAX_SIBLINGS));
    }, () => {});
  }, [node.path]);
  const options = [["", NONE], ...nodes.map((one) => [one.path, `${one.name} (${one.path})`])];
  return html`<${Choice} label="Place" value=${draft.side} options=${SIDES} error=${errors.side} onChange=${(/** @type {string} */ side) => set({ side })} />
    ${["before", "after"].includes(draft.side) && html`<${Choice} label="Sibling" value=${draft.beside} options=${options}
      error=${errors.beside} onChange=${(/** @type {string} */ beside) => set({ beside })}
      hint=${nodes.length === MAX_SIBLINGS ? `The first ${MAX_SIBLINGS} siblings of its level.` : undefined} />`}`;
}

// -- drafts -----------------------------------------------------------------------------------------------------------

/**
 * The content of a node as what the fields of a new or changed node hold. Throws an Error for a value that was not read:
 * its field would be empty, and empty it.
 * @param {Hierarchy} hierarchy
 * @param {Content} node
 * @returns {Draft}
 */
export const draftOf = (hierarchy, node) => ({
  level: node.level, name: node.name, names: node.names, values: formValues(hierarchy, node.level, (one) => {
    if (node[one.name] === undefined) throw new Error(`${labelOf(one)} could not be read, so nothing can be written here. Try again.`);
    return node[one.name];
  }),
});

/** What the fields of a new node hold. @param {Hierarchy} hierarchy @param {string} level @returns {Draft} */
export const newDraft = (hierarchy, level) => ({ level, key: "", name: "", names: [], values: formValues(hierarchy, level) });

/**
 * What the fields of attributes hold, empty without values.
 * @param {Hierarchy} hierarchy @param {string} level @param {(one: Attribute) => any} [valueOf]
 */
const formValues = (hierarchy, level, valueOf = () => null) =>
  Object.fromEntries(storedAttributes(levelOf(hierarchy, level)).map((one) => [one.name, toForm(one, valueOf(one))]));

/**
 * The attributes whose fields changed, as input. Throws FieldErrors for texts that are no values of their types.
 * @param {Hierarchy} hierarchy
 * @param {Draft} draft
 * @param {Record<string, any>} old
 */
function changedAttributes(hierarchy, draft, old) {
  /** @type {Record<string, unknown>} */
  const changed = {};
  /** @type {Record<string, string>} */
  const errors = {};
  for (const one of storedAttributes(levelOf(hierarchy, draft.level))) {
    const form = draft.values[one.name];
    if (same(form, old[one.name])) continue;
    try {
      changed[one.name] = toInput(one, form, old[one.name]);
    } catch (error) {
      errors[one.name] = /** @type {Error} */ (error).message;
    }
  }
  if (Object.keys(errors).length) throw new FieldErrors(errors);
  return changed;
}

/**
 * A draft of an update after somebody else wrote: own changes stay, and everything else becomes theirs.
 * @param {Hierarchy} hierarchy
 * @param {Draft} draft
 * @param {Content} before
 * @param {Content} theirs
 * @returns {Draft}
 */
export function rebased(hierarchy, draft, before, theirs) {
  const [old, now] = [draftOf(hierarchy, before), draftOf(hierarchy, theirs)];
  const merged = (/** @type {any} */ was, /** @type {any} */ own, /** @type {any} */ is) =>
    Array.isArray(is) ? mergedTexts(was, own, is) : same(own, was) ? is : own;
  return {
    ...draft,
    name: merged(old.name, draft.name, now.name),
    names: mergedTexts(old.names, draft.names, now.names),
    values: Object.fromEntries(
      Object.keys(now.values).map((name) => [name, merged(old.values[name], draft.values[name], now.values[name])]),
    ),
  };
}

/**
 * What a node would hold after the update of a draft, as it is shown.
 * @param {Hierarchy} hierarchy
 * @param {Draft} draft
 */
export const drafted = (hierarchy, draft) => ({
  name: draft.name, names: draft.names,
  ...Object.fromEntries(
    storedAttributes(levelOf(hierarchy, draft.level)).map((one) => [one.name, fromForm(one, draft.values[one.name])]),
  ),
});

// -- differences ------------------------------------------------------------------------------------------------------

export const NOTHING = { names: [] };

/**
 * What differs between two contents of a node, such as two revisions: name, names in languages and attributes. NOTHING is
 * the content of what is created or deleted.
 * @param {Level} level
 * @param {any} before
 * @param {any} after
 * @returns {Difference[]}
 */
export function differences(level, before, after) {
  const languages = [...new Set([...before.names, ...after.names].map((one) => one.language))].sort();
  const text = (/** @type {any} */ node, /** @type {string} */ language) =>
    node.names.find((/** @type {Text} */ one) => one.language === language)?.text;
  const rows = [
    { label: "Name", type: "String", before: before.name, after: after.name },
    ...languages.map((one) => ({ label: `Name (${one})`, type: "String", before: text(before, one), after: text(after, one) })),
    ...storedAttributes(level).map((one) => ({ label: labelOf(one), type: one.type, before: before[one.name], after: after[one.name] })),
  ];
  return rows.map(differenceOf).filter((row) => row.before !== row.after);
}

/** @param {{label: string, type: string, before: any, after: any}} row @returns {Difference} */
function differenceOf({ label, type, before, after }) {
  const [was, is] = [before, after].map((one) => textOf(one, formatted, type));
  if (was !== is) return { label, before: was, after: is };
  // Two times of one minute are shown alike, and differ nevertheless.
  return { label, before: textOf(before, String), after: textOf(after, String) };
}

/**
 * A value as text; a dash where there is none.
 * @param {any} value @param {(value: any, type: string) => string} scalar @param {string} [type] @returns {string}
 */
function textOf(value, scalar, type = "") {
  if (value === null || value === undefined || value === "") return NONE;
  const element = elementType(type);
  const part = (/** @type {any} */ one) => textOf(one, scalar, typeof value === "object" && !Array.isArray(value) ? "" : element);
  if (Array.isArray(value)) return value.length ? value.map(part).join(", ") : NONE;
  if (typeof value !== "object") return scalar(value, element);
  if (value.texts) return value.texts.map((/** @type {Text} */ one) => `${one.language}: ${one.text}`).join("; ") || NONE;
  if ("currency" in value) return `${scalar(value.amount, "Decimal")} ${value.currency}`;
  return Object.entries(value).map(([name, one]) => `${name}: ${part(one)}`).join("; ");
}

// -- documents --------------------------------------------------------------------------------------------------------

/** The mutation of a form. @param {Hierarchy} hierarchy @param {Verb} verb */
export function mutation(hierarchy, verb) {
  const kind = FORMS[verb].kind ?? verb;
  const type = `${kind[0].toUpperCase()}${kind.slice(1)}${hierarchy.title}Input`;
  return `mutation ${verb}($input: ${type}!, $dryRun: Boolean!, $idempotencyKey: String) {
  result: ${kind}${hierarchy.title}(input: $input, dryRun: $dryRun, idempotencyKey: $idempotencyKey) {
    node { path } ${["move", "delete", "restore"].includes(kind) ? `move { ${MOVE} }` : ""} plan { nodes transactions writeUnits }
    userErrors { code message field }
  }
}`;
}

/** The mutation of several nodes, which are changed all or none. @param {Hierarchy} hierarchy */
export const batch = ({ title, listField }) => `mutation edit($edits: [${title}Edit!]!, $dryRun: Boolean!, $idempotencyKey: String) {
  result: edit${listField[0].toUpperCase()}${listField.slice(1)}(edits: $edits, dryRun: $dryRun, idempotencyKey: $idempotencyKey) {
    nodes { path } plan { nodes transactions writeUnits }
    userErrors { code message field edit }
  }
}`;

/** The progress of a large move. */
export const PROGRESS = `query progress($id: ID!) { move(id: $id) { ${MOVE} } }`;

/** The content of one node, by its path or its id. @param {Hierarchy} hierarchy @param {Level} level */
export const content = (hierarchy, level) => `query content($path: Path, $id: ID) {
  node: ${hierarchy.field}(path: $path, id: $id) {
    ${CONTENT} descendantCount
    ${attributesOn(level, level.title)}
  }
}`;

/** The content of the children of a node that are of one level. @param {Hierarchy} hierarchy @param {Level} level */
export const childrenContent = (hierarchy, level) => `query childrenContent($id: ID!, $first: Int!) {
  node: ${hierarchy.field}(id: $id) {
    list: children(level: ${level.name}, first: $first) {
      totalCount
      nodes { ${CONTENT} ${attributesOn(level, level.title)} }
    }
  }
}`;

/** The fields of all stored attributes of a type of this level. @param {Level} level @param {string} type */
export function attributesOn(level, type) {
  const fields = storedAttributes(level).map((one) => `${one.name} ${one.selection ?? ""}`);
  return fields.length ? `... on ${type} { ${fields.join(" ")} }` : "";
}

/** The children of a node that are of one level. @param {Hierarchy} hierarchy */
export const childrenOfLevel = (hierarchy) => `query childrenOfLevel($path: Path!, $level: [${hierarchy.title}Level!]!, $first: Int!) {
  node: ${hierarchy.field}(path: $path) { list: children(level: $level, first: $first) { nodes { path name } } }
}`;

/** The roots that are of one level. @param {Hierarchy} hierarchy */
export const rootsOfLevel = (hierarchy) => `query rootsOfLevel($level: [${hierarchy.title}Level!]!, $first: Int!) {
  list: ${hierarchy.listField}(level: $level, first: $first) { nodes { path name } }
}`;
