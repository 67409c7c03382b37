// Writes the files of a configuration of GraphQL Code Generator, without its command: node types.mjs codegen.json
import { readFileSync, writeFileSync } from "node:fs";
import { codegen } from "@graphql-codegen/core";
import * as operations from "@graphql-codegen/typescript-operations";
import { parse } from "graphql";

const pluginMap = { "typescript-operations": operations };
const read = (file) => parse(readFileSync(file, "utf8"));
const { schema, documents, generates } = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const [filename, { plugins, config }] of Object.entries(generates)) {
  const options = { schema: read(schema), documents: [{ document: read(documents) }], config, filename, pluginMap };
  writeFileSync(filename, await codegen({ ...options, plugins: plugins.map((name) => ({ [name]: {} })) }));
}
