// Follows a tree with the client graphql-sse, as docs/following-changes.md shows it, and prints each page as a line.
// node event-stream.mjs FILE TREE — the file has the address of the server, which changes when it is started again.
import { readFileSync } from "node:fs";
import { createClient } from "graphql-sse";

const [file, tree] = process.argv.slice(2);
let cursor;

const client = createClient({
  url: () => readFileSync(file, "utf8"),
  headers: () => (cursor ? { "last-event-id": cursor } : {}),
  retryAttempts: 1000,
  retry: () => new Promise((resolve) => setTimeout(resolve, 50)),
});
const query = `subscription Changes($tree: Path!) {
  changes(hierarchy: CATEGORY, tree: $tree) { changes { event path nodeId } cursor hasMore }
}`;
for await (const { data, errors } of client.iterate({ query, variables: { tree } })) {
  cursor = data?.changes?.cursor ?? cursor;
  console.log(JSON.stringify({ changes: data?.changes?.changes, errors }));
}
