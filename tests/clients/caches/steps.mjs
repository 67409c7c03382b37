// Reads, changes and undoes, and compares what a client's cache shows after each step with what the server says.
// node steps.mjs apollo|urql|relay URL OPERATIONS [ARTIFACTS]: prints a line of JSON for each query of each step.
import { readFileSync } from "node:fs";
import { parse, print } from "graphql";

const [kind, url, operations, artifacts] = process.argv.slice(2);
const { definitions } = parse(readFileSync(operations, "utf8"), { noLocation: true });
const documents = Object.fromEntries(definitions.map((one) => [one.name.value, { kind: "Document", definitions: [one] }]));
const complaints = [];
for (const level of ["warn", "error"]) console[level] = (...words) => complaints.push(words.join(" "));

const { open } = await import(`./${kind}.mjs`);
const cache = await open(url, documents, artifacts);

const query = (name) => `caches${name}Query`;
const ask = (name, variables) => cache.ask(query(name), variables);
const mutate = (name, variables) => cache.mutate(`caches${name}Mutation`, variables);

async function server(name, variables) {
  const body = JSON.stringify({ query: print(documents[query(name)]), variables });
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { data, errors } = await answer.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

// The fields that were asked for, without those that clients add.
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith("__")).map(([key, one]) => [key, plain(one)]));
}

async function compare(step, ...watched) {
  for (const [name, variables] of watched) {
    const shown = plain(await cache.shown(query(name), variables)) ?? null;
    console.log(JSON.stringify({ step, query: name, variables, shown, server: await server(name, variables) }));
  }
}

const refetch = async (...watched) => {
  for (const one of watched) await ask(...one);
};

const [PRESS, LATHE] = [`${kind} Press`, `${kind} Lathe`];
const MAY = `${PRESS}/2026-05`;
const press = ["Machine", { path: PRESS }];
const lathe = ["Machine", { path: LATHE }];
const belowPress = ["Below", { path: PRESS }];
const belowLathe = ["Below", { path: LATHE }];
const counts = [["Counts", { path: PRESS }], ["Counts", { path: LATHE }]];
const lists = [press, lathe, belowPress, belowLathe];
const first = ["Audit", { path: MAY }];
const { audit: { id } } = await server(...first);
const node = ["Node", { id }];
const revision = ["Revision", { path: MAY, n: 1 }];
const history = ["History", { path: MAY }];
const deleted = ["Deleted", { id }];
const changes = ["Changes", { tree: PRESS }];

await refetch(first, node, ...counts, ...lists);
await compare("read", ...counts, first, node, ...lists);

await mutate("Update", { path: MAY, name: "May", attributes: { audit: { result: "PASSED" } } });
await compare("update", first, press);
await refetch(node);
await compare("update, other queries of the node", node);

await refetch(revision);
await compare("revision 1", revision, first, node, press);
await refetch(history);
await compare("history", history, revision, first, node, press);

await mutate("Update", { path: MAY, name: "2026-05", attributes: { audit: { result: "OPEN" } } });
await compare("undo of the update", first, node, press, revision);
await refetch(history);
await compare("undo of the update", history, revision, first, node);

await mutate("Create", { parent: PRESS, key: "2026-06", attributes: { audit: { result: "OPEN" } } });
await compare("create, without another request", ...counts);
await refetch(...lists);
await compare("create", ...lists);

await mutate("Rename", { path: `${PRESS}/Pump`, key: "Old pump" });
await refetch(...lists);
await compare("rename", ...lists);

await mutate("Move", { path: `${PRESS}/Old pump`, to: LATHE });
await compare("move, without another request", ...counts);
await refetch(...lists);
await compare("move", ...lists, first);

await mutate("Move", { path: `${LATHE}/Old pump`, to: PRESS });
await compare("undo of the move, without another request", ...counts);
await refetch(...lists);
await compare("undo of the move", ...lists, first);

await mutate("Reorder", { path: `${PRESS}/2026-06`, before: MAY });
await refetch(press, belowPress);
await compare("reorder", ...lists);

await mutate("Delete", { path: MAY });
await compare("delete, without another request", ...counts, first, node);
await refetch(deleted);
await compare("deleted node", deleted, ...counts, first, node);
await refetch(first, node, ...lists);
await compare("delete", deleted, first, node, ...lists);

await mutate("Create", { parent: PRESS, key: "2026-05", id, attributes: { audit: { auditor: "Di" } } });
await refetch(deleted, first, node, ...lists);
await compare("undo of the deletion", deleted, first, node, ...lists);
await refetch(changes);
await compare("changes", changes, first, node, ...lists);
console.log(JSON.stringify({ complaints }));
