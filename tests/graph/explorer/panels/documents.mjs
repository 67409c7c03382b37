// Prints the documents of the panels for the hierarchies in a file of JSON: node documents.mjs FILE
import { readFileSync } from "node:fs";
import * as made from "../../../../graph/explorer/assets/documents_writing.js";

const documents = [made.CHANGES, made.PROGRESS];
for (const hierarchy of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  documents.push(made.childrenOfLevel(hierarchy), made.rootsOfLevel(hierarchy), made.childrenWith(hierarchy), ...made.VERBS.map((verb) => made.mutation(hierarchy, verb)));
  for (const level of hierarchy.levels) documents.push(made.content(hierarchy, level), made.history(hierarchy, level));
}
console.log(JSON.stringify(documents));
