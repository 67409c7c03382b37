// Composes subgraphs: node compose.mjs NAME=FILE... Prints one line of JSON: the supergraph, or the composer's errors.
import { readFileSync } from "node:fs";
import { composeServices } from "@theguild/federation-composition";
import { parse } from "graphql";

const services = process.argv.slice(2).map((argument) => {
  const [name, file] = argument.split("=");
  return { name, url: `http://${name}.invalid`, typeDefs: parse(readFileSync(file, "utf8")) };
});
const { supergraphSdl, errors } = composeServices(services);
process.stdout.write(`${JSON.stringify({ supergraph: supergraphSdl, errors: (errors ?? []).map(String) })}\n`);
