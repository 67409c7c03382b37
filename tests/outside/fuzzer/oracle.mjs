// Oracle: answers documents by graphql-js over nodes that were read one by one. JSON lines on stdin and stdout.
// What it cannot know from the documentation it asks: {"ask": {query, variables}} is sent to Clade alone.
import { createInterface } from "node:readline";
import { GraphQLError, buildSchema, execute, getNamedType, isEnumType, isInterfaceType, isListType, isObjectType,
  parse, validate } from "graphql";
import { collectSubfields } from "graphql/execution/collectFields.js";
import { distance, Lists, Refused, Unsure } from "./conditions.mjs";
import { facets } from "./facets.mjs";
import { Hierarchy, page } from "./relations.mjs";
import { choose, isUsualTag } from "./text.mjs";

const BIG = "$big";
const revive = (key, value) => (value && typeof value === "object" && BIG in value ? BigInt(value[BIG]) : value);
const write = (value) => JSON.stringify(value, (key, one) => (typeof one === "bigint" ? { [BIG]: String(one) } : one));
const send = (value) => process.stdout.write(`${write(value)}\n`);
const waiting = new Map();
let questions = 0;
let world = null;

class TooMuch extends Error {}
const failure = (code, message = code) => new GraphQLError(message, { extensions: { code } });

function literal(ast, variables) {
  switch (ast.kind) {
    case "IntValue": return Number.isSafeInteger(Number(ast.value)) ? Number(ast.value) : BigInt(ast.value);
    case "FloatValue": return Number(ast.value);
    case "StringValue": case "BooleanValue": case "EnumValue": return ast.value;
    case "ListValue": return ast.values.map((value) => literal(value, variables));
    case "ObjectValue":
      return Object.fromEntries(ast.fields.map(({ name, value }) => [name.value, literal(value, variables)]));
    case "Variable": return variables?.[ast.name.value];
    default: return null;
  }
}

function makeWorld({ sdl, hierarchies, redirects }) {
  const schema = buildSchema(sdl, { assumeValidSDL: true });
  const types = {};
  const enums = {};
  for (const type of Object.values(schema.getTypeMap())) {
    if (isEnumType(type) && !type.name.startsWith("__")) enums[type.name] = type.getValues().map(({ name }) => name);
    if (["Long", "Decimal", "Date", "DateTime", "Url", "Path", "_Any"].includes(type.name)) {
      Object.assign(type, { serialize: (v) => v, parseValue: (v) => v, parseLiteral: literal });
    }
  }
  const made = hierarchies.map((given) => {
    const found = Object.assign(new Hierarchy(given), { fields: given.fields, interface: given.interface });
    const shapes = types[given.name] = {};
    for (const type of [schema.getType(given.interface), ...schema.getPossibleTypes(schema.getType(given.interface))]) {
      for (const field of Object.values(type.getFields())) {
        shapes[field.name] = String(field.type).replaceAll("!", "");
      }
    }
    return found;
  });
  return { schema, hierarchies: made, lists: new Lists(types, enums), redirects, asked: new Map(), cursors: new Map() };
}

function ask(query, variables) {
  const key = write([query, variables]);
  if (!world.asked.has(key)) {
    world.asked.set(key, new Promise((resolve) => {
      const number = ++questions;
      waiting.set(number, resolve);
      send({ ask: number, query, variables });
    }));
  }
  return world.asked.get(key);
}

/**
 * What Clade says about one field of the root, of one node by its path, or of one deleted node, if it is asked for
 * nothing else. Nulls that have an error become that error; one that has come from below is the field's own if `exact`
 * (nothing else would have been selected), and otherwise says nothing about other selections.
 */
async function alone(parent, field, args, selection, node = null, exact = false) {
  const given = field.args.filter(({ name }) => args[name] !== undefined);
  const defined = given.map(({ name, type }) => `$${name}: ${type}`);
  const inner = `${field.name}${given.length ? `(${given.map(({ name }) => `${name}: $${name}`).join(", ")})` : ""}${selection}`;
  const variables = Object.fromEntries(given.map(({ name }) => [name, args[name]]));
  let body = inner;
  let above = [];
  if (node?.$deleted) {
    defined.push("$nodeId: ID!");
    variables.nodeId = node.$deleted;
    [body, above] = [`deletedNode(id: $nodeId) { ${inner} }`, ["deletedNode"]];
  } else if (node) {
    defined.push("$nodePath: Path!");
    variables.nodePath = node.path;
    above = [node.$hierarchy.fields.field];
    body = `${above[0]}(path: $nodePath) { ... on ${node.__typename} { ${inner} } }`;
  }
  const head = defined.length ? `query(${defined.join(", ")})` : "query";
  const answer = await ask(`${head} { ${body} }`, variables);
  if (!answer.data) throw toFailure(answer.errors[0]);
  if (!answer.$placed) for (const error of answer.errors ?? []) placeError(answer.data, error, [...above, field.name], exact);
  answer.$placed = true;
  const holder = above.length ? answer.data[above[0]] : answer.data;
  const value = holder instanceof Error ? holder : holder[field.name];
  if (value instanceof Error) throw value;
  return value;
}

const toFailure = ({ extensions, message }) => failure(extensions?.code, message);

function placeError(data, error, own, exact) {
  const { path } = error;
  for (let i = 0; path && data && !(data instanceof Error) && i < path.length; i++) {
    if (data[path[i]] === null) {
      const isBelow = i < path.length - 1 && !(i < own.length && path.length <= own.length);
      data[path[i]] = isBelow && !exact ? new Skip("an error below") : toFailure(error);
    }
    data = data[path[i]];
  }
}

const nodeAt = (path) => {
  for (const hierarchy of world.hierarchies) {
    const found = hierarchy.byPath.get(path) ?? hierarchy.byPath.get(world.redirects[path]);
    if (found) return found;
  }
  return null;
};
const nodeOf = (id) => world.hierarchies.map((one) => one.byId.get(id)).find(Boolean) ?? null;

/** Everything of a type that takes no argument; nodes by their path alone. */
const conflicts = new Map();

/** Fields that the types of an interface have with different types, so that they need an alias. */
function conflicting(face) {
  if (!conflicts.has(face)) {
    const types = {};
    for (const one of world.schema.getPossibleTypes(face)) {
      for (const { name, type } of Object.values(one.getFields())) (types[name] ??= new Set()).add(String(type));
    }
    conflicts.set(face, new Set(Object.keys(types).filter((name) => types[name].size > 1)));
  }
  return conflicts.get(face);
}

function everything(type, depth = 0, aliased = new Set()) {
  const named = getNamedType(type);
  if (depth > 6) return " { __typename }";
  if (world.hierarchies.some((one) => one.interface === named.name || named.getInterfaces?.().some((i) => i.name === one.interface))) {
    return " { __typename path }";
  }
  if (named.name === "Node" || named.name === "_Entity") {
    return ` { __typename ${world.hierarchies.map((one) => `... on ${one.interface} { path }`).join(" ")} }`;
  }
  if (named.name === "NodeRevision" || isInterfaceType(named)) {
    const parts = world.schema.getPossibleTypes(named).map((one) => `... on ${one.name} ${everything(one, depth + 1, conflicting(named))}`);
    return ` { __typename ${parts.join(" ")} }`;
  }
  if (!isObjectType(named)) return "";
  const fields = Object.values(named.getFields()).filter((field) => field.args.every((arg) => !String(arg.type).endsWith("!"))
    && !["history", "edges"].includes(field.name));
  return ` { __typename ${fields.map(({ name, type }) => `${aliased.has(name) ? `${named.name}__${name}: ` : ""}${name}${everything(type, depth + 1)}`).join(" ")} }`;
}

/** Values that were read become what the resolvers below take. */
function place(value) {
  if (Array.isArray(value)) return value.map(place);
  if (!value || typeof value !== "object" || value instanceof Error) return value;
  if (value.__typename && "path" in value && nodeAt(value.path)?.__typename === value.__typename && Object.keys(value).length === 2) {
    return readable(nodeAt(value.path));
  }
  const prefix = `${value.__typename}__`;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.startsWith(prefix) ? key.slice(prefix.length) : key, place(one)]));
}

const DAMAGED = "damaged nodes";
const LISTS = new Set(["children", "descendants"]);
const PAGING = ["first", "last", "after", "before"];
const listKey = (node, kind, args) =>
  write([node?.path ?? null, kind, Object.entries(args).filter(([key]) => !PAGING.includes(key)).sort(([a], [b]) => (a < b ? -1 : 1))]);

async function connection(info, node, kind, args, hierarchy) {
  const field = info.parentType.getFields()[info.fieldName];
  const of = (selection) => alone(info.parentType, field, args, ` { ${selection} }`, node, true);
  const edge = getNamedType(getNamedType(field.type).getFields().edges.type).getFields().kilometers ? "cursor kilometers" : "cursor";
  const read = () => of(`nodes { path } edges { ${edge} } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`);
  const key = listKey(node ?? { path: hierarchy.name }, kind, args);
  let whole, cut;
  try {
    // Of a list with several faults any may be told.
    const cursors = [args.after, args.before].filter((one) => one != null);
    if (cursors.some((one) => world.cursors.get(one)?.key !== key)) throw new Unsure("a cursor of another list");
    whole = hierarchy.whole(kind, node, args, world.lists);
    const isCompared = args.where || args.orderBy;
    if (hierarchy[kind](node).some((one) => one.$unreadable || (isCompared && one.$isDamaged))) throw new Unsure(DAMAGED);
    cut = page(whole, args, (cursor) => whole.findIndex((one) => one.path === world.cursors.get(cursor).path));
  } catch (error) {
    if (error instanceof Refused) throw failure("BAD_USER_INPUT", error.message);
    if (!(error instanceof Unsure)) throw error;
    world.unsure.set(error.message, (world.unsure.get(error.message) ?? 0) + 1);
    const value = await (error.message === DAMAGED ? of(selected(info)) : read());
    const at = ({ path }) => hierarchy.byPath.get(path);
    count((value.nodes ?? value.edges ?? []).length);
    return {
      ...value, nodes: value.nodes?.map(at),
      edges: value.edges?.map(({ node: one, ...rest }, i) => ({ ...rest, node: one ? at(one) : value.nodes && at(value.nodes[i]) })),
    };
  }
  count(args.where || args.orderBy ? hierarchy.whole(kind, node, { ...args, where: null, orderBy: null }, world.lists).length : cut.nodes.length);
  const said = async () => {
    const value = await read();
    if (write(value.nodes.map(({ path }) => path)) !== write(cut.nodes.map(({ path }) => path))) {
      world.wrong.push({ list: key, args, expected: cut.nodes.map(({ path }) => path), got: value.nodes.map(({ path }) => path) });
    }
    value.edges.forEach(({ cursor }, i) => world.cursors.set(cursor, { key, path: cut.nodes[i]?.path }));
    return value;
  };
  const info_ = (name) => (cut[name] ?? said().then((value) => value.pageInfo[name]));
  return {
    totalCount: whole.length,
    nodes: cut.nodes,
    facets: (asked) => counted(hierarchy, kind, node, args, asked),
    edges: cut.nodes.map((one, i) => ({
      node: one, cursor: () => said().then((value) => value.edges[i]?.cursor),
      kilometers: () => (args.where?.near ? said().then((value) => measured(one, args.where.near, value.edges[i]?.kilometers)) : null),
    })),
    pageInfo: {
      hasNextPage: () => info_("hasNextPage"),
      hasPreviousPage: () => info_("hasPreviousPage"),
      startCursor: () => (cut.nodes.length ? said().then((value) => value.pageInfo.startCursor) : null),
      endCursor: () => (cut.nodes.length ? said().then((value) => value.pageInfo.endCursor) : null),
    },
  };
}

/** A distance as Clade has computed it, if that is right. */
function measured(node, near, got) {
  const expected = distance(node, near);
  if (!(Math.abs(expected - got) < 1e-6)) world.wrong.push({ list: node.path, args: near, expected, got });
  return got;
}

/** The facets of a list. What they are of nodes that cannot be read, or of texts whose order is open, is not known. */
function counted(hierarchy, kind, node, args, asked) {
  if (hierarchy[kind](node).some((one) => one.$isDamaged)) throw new Skip("facets of damaged nodes");
  world.facets += asked.fields.length;
  try {
    return facets(hierarchy, kind, node, args, asked, world.lists);
  } catch (error) {
    if (error instanceof Refused) throw failure("BAD_USER_INPUT", error.message);
    if (error instanceof Unsure) throw new Skip(error.message);
    throw error;
  }
}

/** What a list that has damaged nodes is asked for, since it depends on what is selected whether these are read. */
function selected(info) {
  const fieldsOf = (type, nodes) => {
    try {
      return [...collectSubfields(info.schema, info.fragments, info.variableValues, type, nodes).values()];
    } catch {
      throw new Skip("a condition that is null in a damaged list");
    }
  };
  const parts = fieldsOf(getNamedType(info.returnType), info.fieldNodes).map((nodes) => {
    const name = nodes[0].name.value;
    if (name === "nodes") return "nodes { path }";
    if (name === "pageInfo") return "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }";
    if (name === "facets") throw new Skip("facets of damaged nodes");
    if (name !== "edges") return name;
    const type = getNamedType(getNamedType(info.returnType).getFields().edges.type);
    return fieldsOf(type, nodes).some(([one]) => one.name.value === "node") ? "edges { cursor node { path } }" : "edges { cursor }";
  });
  return [...new Set(parts)].sort().join(" ") || "__typename";
}

/** A node, or the error of one that cannot be read. */
const readable = (node) => (node?.$unreadable ? failure(node.$unreadable) : node);

const isReadable = (node) => Boolean(node && !node.$unreadable);

function count(nodes) {
  world.nodes += nodes;
  if (world.nodes > 40000) throw new TooMuch();
}

const chosen = (source, languages) => {
  if (languages.length > 20 || !languages.every(isUsualTag)) return undefined;
  return choose(source, languages);
};

/** A field with arguments of a node or of a revision. */
async function nodeField(node, name, args, info) {
  const hierarchy = node.$hierarchy;
  if (LISTS.has(name)) return connection(info, node, name, args, hierarchy);
  const field = info.parentType.getFields()[name];
  const replay = async () => place(await alone(info.parentType, field, args, everything(field.type), node));
  if (node.$isDamaged && Object.keys(args).length && !["history", "atRevision"].includes(name)) return replay();
  if (node.$damaged && name in node.$damaged) throw failure(node.$damaged[name]);
  switch (name) {
    case "levelName": return node.level;
    case "parent": case "ancestors": {
      count(name === "ancestors" ? hierarchy.ancestors(node).length : 1);
      const found = hierarchy[name](node);
      return Array.isArray(found) ? found.map(readable) : readable(found);
    }
    case "childCount": case "descendantCount": {
      if (args.level?.length === 0) return replay();
      const list = name === "childCount" ? hierarchy.children(node) : hierarchy.descendants(node);
      return args.level == null ? list.length : list.filter(({ level }) => args.level.includes(level)).length;
    }
    case "name": case "nameLanguage": {
      if (args.languages == null) return name === "name" ? node.name : null;
      const found = chosen(node.names, args.languages);
      if (found === undefined) return replay();
      return name === "name" ? found?.text ?? node.name : found?.language ?? null;
    }
    case "history": return history(node, field, args, info);
    case "atRevision": {
      world.past += 1;
      return revision(await alone(info.parentType, field, args, everything(field.type), node));
    }
    default: return localized(node[name]);
  }
}

/** A page of the revisions, cut from all of them; the cursors of all are those of a page. */
async function history(node, field, args, info) {
  world.past += 1;
  const selection = ` { totalCount edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } nodes ${everything(getNamedType(getNamedType(field.type).getFields().nodes.type))} }`;
  const all = await alone(info.parentType, field, {}, selection, node);
  if (!all) return all;
  const key = listKey(node.$deleted ? { path: node.$deleted } : node, "history", {});
  const revisions = all.nodes.map((one, i) => ({ ...revision(one), $cursor: all.edges[i].cursor }));
  for (const one of revisions) world.cursors.set(one.$cursor, { key, path: String(one.revision) });
  let cut;
  try {
    cut = page(revisions, args, (cursor) => {
      const known = world.cursors.get(cursor);
      if (known?.key !== key) throw new Unsure("a cursor of another list");
      return revisions.findIndex((one) => String(one.revision) === known.path);
    });
  } catch (error) {
    if (error instanceof Refused) throw failure("BAD_USER_INPUT", error.message);
    if (!(error instanceof Unsure)) throw error;
    world.unsure.set(error.message, (world.unsure.get(error.message) ?? 0) + 1);
    const value = await alone(info.parentType, field, args, selection, node);
    return value && { ...value, nodes: value.nodes.map(revision), edges: value.nodes.map((one, i) => ({ cursor: value.edges[i].cursor, node: revision(one) })) };
  }
  const asked = (name) => alone(info.parentType, field, args, selection, node).then((value) => value.pageInfo[name]);
  return {
    totalCount: revisions.length,
    nodes: cut.nodes,
    edges: cut.nodes.map((one) => ({ node: one, cursor: one.$cursor })),
    pageInfo: {
      hasNextPage: () => cut.hasNextPage ?? asked("hasNextPage"),
      hasPreviousPage: () => cut.hasPreviousPage ?? asked("hasPreviousPage"),
      startCursor: cut.nodes[0]?.$cursor ?? null,
      endCursor: cut.nodes.at(-1)?.$cursor ?? null,
    },
  };
}

const revision = (value) => value && { ...place(value), $revision: true };

function localized(value) {
  if (value?.__typename !== "Localized") return value;
  return { ...value, $localized: true };
}

function texts(source, name, args, plain) {
  const found = args.languages == null ? null : chosen(source, args.languages);
  if (args.languages?.length > 20 || args.languages?.some((tag) => tag.includes(" "))) throw failure("BAD_USER_INPUT");
  if (found === undefined) throw new Skip("languages");
  return name === "language" ? found?.language ?? null : found?.text ?? plain;
}
class Skip extends Error {}

async function root(name, args, info) {
  const field = info.parentType.getFields()[name];
  const replay = async () => {
    const value = await alone(info.parentType, field, args, everything(field.type));
    return name === "deletedNode" && value ? { ...place(value), $deleted: args.id, lastRevision: revision(value.lastRevision) } : place(value);
  };
  for (const hierarchy of world.hierarchies) {
    if (name === hierarchy.fields.listField) return connection(info, null, "roots", args, hierarchy);
    if (name === `${hierarchy.fields.listField}ByPath`) {
      count(args.paths.length);
      if (args.paths.length > 100 || !args.paths.every((path) => isReadable(hierarchy.byPath.get(path)))) return replay();
      return args.paths.map((path) => hierarchy.byPath.get(path));
    }
  }
  count(1);
  const single = getNamedType(field.type);
  if (field.args.length === 2 && field.args[0].name === "path") {
    if ((args.path == null) === (args.id == null)) throw failure("BAD_USER_INPUT");
    const node = args.path != null ? nodeAt(args.path) : nodeOf(args.id);
    const isOf = node && (node.$hierarchy.interface === single.name || node.__typename === single.name);
    if (!isReadable(node) || !isOf) return replay();
    return node;
  }
  if (name === "node" && isReadable(nodeOf(args.id))) return nodeOf(args.id);
  if (name === "nodes" && args.ids.map(nodeOf).every(isReadable)) {
    count(args.ids.length);
    return args.ids.map(nodeOf);
  }
  return replay();
}

async function resolve(source, args, context, info) {
  const name = info.fieldName;
  world.fields += 1;
  if (world.fields > 400000) throw new TooMuch();
  if (source === undefined) return root(name, args, info);
  if (source.$hierarchy) return nodeField(source, name, args, info);
  if (source.$localized && name !== "texts") return texts(source.texts, name, args, null);
  if (source.$revision && name === "name") {
    return args.languages == null ? source.name : texts(source.names, name, args, source.name);
  }
  if (source.$deleted && (name === "history" || name === "atRevision")) {
    const field = info.parentType.getFields()[name];
    if (name === "history") return history(source, field, args, info);
    world.past += 1;
    return revision(await alone(info.parentType, field, args, everything(field.type), source));
  }
  const value = source[name];
  if (value === undefined) throw new Skip(`${info.parentType.name}.${name}`);
  return localized(typeof value === "function" ? value(args) : value);
}

// docs/reference/errors.md: "An argument or a variable is invalid".
const codeOf = ({ extensions, message }) => extensions?.code ?? (message.startsWith("Argument ") ? "BAD_USER_INPUT" : undefined);
const typeResolver = (value) => value.__typename;

async function answer({ query, variables }) {
  Object.assign(world, { nodes: 0, fields: 0, facets: 0, past: 0, wrong: [], skipped: [], unsure: new Map() });
  let document;
  try {
    document = parse(query);
  } catch (error) {
    return { kind: "syntax", message: error.message };
  }
  const invalid = validate(world.schema, document);
  if (invalid.length) return { kind: "invalid", message: invalid[0].message };
  const lines = query.split(/\r\n|[\n\r]/);
  const inCharacters = ({ line, column }) => ({ line, column: Array.from(lines[line - 1].slice(0, column - 1)).length + 1 });
  const result = await execute({ schema: world.schema, document, variableValues: variables, fieldResolver: resolve, typeResolver });
  const originals = (result.errors ?? []).map((error) => error.originalError ?? error);
  const much = originals.some((error) => error instanceof TooMuch);
  const skips = originals.filter((error) => error instanceof Skip).map((error) => error.message);
  const bugs = originals.filter((error) => !(error instanceof GraphQLError || error instanceof Skip || error instanceof TooMuch));
  return {
    kind: "data" in result ? "result" : "refused", data: result.data, much, skips, bugs: bugs.map((error) => error.stack),
    errors: (result.errors ?? []).map((error) => ({ path: error.path, code: codeOf(error), message: error.message, locations: error.locations?.map(inCharacters) })),
    nodes: world.nodes, fields: world.fields, facets: world.facets, past: world.past, wrong: world.wrong,
    unsure: Object.fromEntries(world.unsure),
  };
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const message = JSON.parse(line, revive);
  if ("answer" in message) {
    waiting.get(message.answer)(message.body);
    waiting.delete(message.answer);
  } else if ("sdl" in message) {
    world = makeWorld(message);
    send({ ready: true });
  } else if ("cursors" in message) {
    for (const { cursor, path, node, kind, args, hierarchy } of message.cursors) {
      world.cursors.set(cursor, { key: listKey(node === null ? { path: hierarchy } : { path: node }, kind, args), path });
    }
    send({ ready: true });
  } else {
    send({ id: message.id, ...(await answer(message)) });
  }
});
