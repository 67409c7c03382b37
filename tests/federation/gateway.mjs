// Composes Clade with neighbours and runs a gateway in front of them:
//   node gateway.mjs CLADE_URL [--port N] [--host ADDRESS] [--data FILE] NEIGHBOUR...
// FILE holds the neighbours' data by their names. Prints one line of JSON: the gateway's address and the supergraph,
// or the composer's errors.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { createGatewayRuntime } from "@graphql-hive/gateway-runtime";
import { unifiedGraphHandler } from "@graphql-hive/router-runtime";
import { composeServices } from "@theguild/federation-composition";
import { parse } from "graphql";
import { subgraphOf } from "./clade.mjs";

const text = { type: "string" };
const { values: options, positionals } = parseArgs({
  options: { port: text, host: text, data: text },
  allowPositionals: true,
});
const [clade, ...neighbours] = positionals;
const data = options.data ? JSON.parse(readFileSync(options.data, "utf8")) : {};

function start(name) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("subgraph.mjs", import.meta.url), { workerData: { name, data: data[name] } });
    worker.once("message", ({ sdl, ...one }) => resolve({ ...one, typeDefs: parse(sdl) })).once("error", reject);
  });
}

function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

const composed = composeServices(await Promise.all([subgraphOf(clade), ...neighbours.map(start)]));
if (composed.errors) {
  print({ errors: composed.errors.map((error) => error.message) });
  process.exit(1);
}
const gateway = createGatewayRuntime({
  supergraph: composed.supergraphSdl,
  // The runtime's own handler answers null for what an @interfaceObject adds.
  unifiedGraphHandler,
  contentEncoding: { subgraphs: ["clade"] },
  logging: false,
});
const server = createServer(gateway);
server.listen(Number(options.port ?? 0), options.host ?? "127.0.0.1", () => {
  print({ url: `http://127.0.0.1:${server.address().port}/graphql`, supergraph: composed.supergraphSdl });
});
// The runtime takes these signals for its own end, which waits for connections that are kept open.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit());
