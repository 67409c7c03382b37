// Prints TypeScript types for the operations of a document: node types.mjs SCHEMA DOCUMENT [operations]
// With "operations" it prints these and the types that they need, without the other types of the schema.
import { readFileSync } from "node:fs";
import { codegen } from "@graphql-codegen/core";
import * as types from "@graphql-codegen/typescript";
import * as operations from "@graphql-codegen/typescript-operations";
import { parse } from "graphql";

const [schema, document] = process.argv.slice(2, 4).map((file) => parse(readFileSync(file, "utf8")));
const output = await codegen({
  schema,
  documents: [{ document }],
  config: { defaultScalarType: "unknown", scalars: { DateTime: "string", Decimal: "string", Path: "string" } },
  filename: "types.ts",
  plugins: process.argv[4] === "operations" ? [{ operations: {} }] : [{ types: {} }, { operations: {} }],
  pluginMap: { types, operations },
});
console.log(output);
