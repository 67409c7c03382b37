// Composes subgraphs with two composers: node compose.mjs NAME=FILE... Prints one line of JSON: the first one's
// supergraph, and the errors and warnings of both.
import { readFileSync } from "node:fs";
import { composeServices } from "@theguild/federation-composition";
import { federateSubgraphs } from "@wundergraph/composition";
import { parse } from "graphql";

const services = process.argv.slice(2).map((argument) => {
  const [name, file] = argument.split("=");
  return { name, url: `http://${name}.invalid`, typeDefs: parse(readFileSync(file, "utf8")) };
});
const { supergraphSdl, errors } = composeServices(services);
const other = federateSubgraphs({
  subgraphs: services.map(({ typeDefs, ...one }) => ({ ...one, definitions: typeDefs })),
  version: "1",
});
const found = [...(errors ?? []), ...(other.errors ?? []), ...other.warnings];
process.stdout.write(`${JSON.stringify({ supergraph: supergraphSdl, errors: found.map(String) })}\n`);
