// Prints the documents of hierarchies, and those of their dialogs: node print_documents.mjs READING WRITING
// The files have the hierarchies as JSON. Without files, the first document, which asks for those of READING.
import { readFileSync } from "node:fs";
import { childrenWith } from "../../../graph/explorer/assets/fields.js";
import * as forms from "../../../graph/explorer/assets/forms.js";
import { deletedNodes, documents, HIERARCHIES } from "../../../graph/explorer/assets/hierarchy.js";
import { CHANGES, history, PAGE } from "../../../graph/explorer/assets/history.js";

const [reading, writing] = [2, 3].map((place) => process.argv[place] ? JSON.parse(readFileSync(process.argv[place], "utf8")) : []);
const all = reading.map((one) => [one.name.toLowerCase(), documents(one)]);
const dialogs = [CHANGES, forms.PROGRESS, deletedNodes(1), deletedNodes(PAGE)];
for (const hierarchy of writing) {
  dialogs.push(forms.batch(hierarchy), forms.childrenOfLevel(hierarchy), forms.rootsOfLevel(hierarchy), childrenWith(hierarchy));
  for (const verb of Object.keys(forms.FORMS)) dialogs.push(forms.mutation(hierarchy, verb));
  for (const level of hierarchy.levels) dialogs.push(forms.content(hierarchy, level), forms.childrenContent(hierarchy, level), history(hierarchy, level));
}
console.log(JSON.stringify({ hierarchies: HIERARCHIES, documents: Object.fromEntries(all), writing: dialogs }));
