// Prints the documents of hierarchies, and those of their dialogs: node print_documents.mjs READING WRITING
// The files have the hierarchies as JSON. Without files, the first document, which asks for those of READING.
import { readFileSync } from "node:fs";
import { HIERARCHIES, documents } from "../../../graph/explorer/assets/documents.js";
import * as made from "../../../graph/explorer/assets/documents_writing.js";

const [reading, writing] = [2, 3].map((place) => process.argv[place] ? JSON.parse(readFileSync(process.argv[place], "utf8")) : []);
const all = reading.map((one) => [one.name.toLowerCase(), documents(one)]);
const dialogs = [made.CHANGES, made.PROGRESS];
for (const hierarchy of writing) {
  dialogs.push(made.childrenOfLevel(hierarchy), made.rootsOfLevel(hierarchy), made.childrenWith(hierarchy), ...made.VERBS.map((verb) => made.mutation(hierarchy, verb)));
  for (const level of hierarchy.levels) dialogs.push(made.content(hierarchy, level), made.history(hierarchy, level));
}
console.log(JSON.stringify({ hierarchies: HIERARCHIES, documents: Object.fromEntries(all), writing: dialogs }));
