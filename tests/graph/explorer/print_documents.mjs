// Prints the documents of hierarchies: node print_documents.mjs FILE, with the answer to the first document as JSON.
// Without a file, the first document, which asks for them.
import { readFileSync } from "node:fs";
import { HIERARCHIES, documents } from "../../../graph/explorer/assets/documents.js";

const file = process.argv[2];
const hierarchies = file ? JSON.parse(readFileSync(file, "utf8")) : [];
const all = hierarchies.map((one) => [one.name.toLowerCase(), documents(one)]);
console.log(JSON.stringify({ hierarchies: HIERARCHIES, documents: Object.fromEntries(all) }));
