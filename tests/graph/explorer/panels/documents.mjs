// Validates the documents of all hierarchies against a schema: node documents.mjs MODULE SCHEMA HIERARCHIES
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { buildSchema, parse, validate } from "graphql";

const [module, schemaFile, hierarchiesFile] = process.argv.slice(2);
const { VERBS, mutation, content, history, siblings, childrenFrom, CHANGES, PROGRESS } = await import(pathToFileURL(module));
const schema = buildSchema(readFileSync(schemaFile, "utf8"));
const documents = [CHANGES, PROGRESS];
for (const hierarchy of JSON.parse(readFileSync(hierarchiesFile, "utf8"))) {
  documents.push(siblings(hierarchy), childrenFrom(hierarchy), ...VERBS.map((verb) => mutation(hierarchy, verb)));
  for (const level of hierarchy.levels) documents.push(content(hierarchy, level), history(hierarchy, level));
}
const errors = documents.flatMap((text) => validate(schema, parse(text)).map((error) => `${error.message}\n${text}`));
console.log(JSON.stringify({ documents: documents.length, errors }));
