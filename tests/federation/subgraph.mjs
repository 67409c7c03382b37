// A neighbour of Clade in a thread of its own: serves NAME.graphql with what NAME.mjs makes of the data it is given.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { parentPort, workerData } from "node:worker_threads";
import { buildASTSchema, graphql, GraphQLID, parse } from "graphql";

const { name, data } = workerData;
const here = (file) => new URL(file, import.meta.url);

// Not every language turns ids into texts before it sends them.
GraphQLID.serialize = (id) => id;

const sdl = readFileSync(here(`${name}.graphql`), "utf8");
const machinery = `
  scalar _Any
  type _Service { sdl: String! }
  extend type Query { _service: _Service! _entities(representations: [_Any!]!): [_Entity]! }
`;
const { entities, query } = (await import(here(`${name}.mjs`))).make(data);
const union = `union _Entity = ${Object.keys(entities).join(" | ")}`;
const schema = buildASTSchema(parse(`${sdl} ${machinery} ${union}`), { assumeValidSDL: true });
const rootValue = {
  ...query,
  _service: { sdl },
  _entities: ({ representations }) =>
    representations.map((one) => ({ __typename: one.__typename, ...entities[one.__typename](one) })),
};

async function answer(request, response) {
  let body = "";
  for await (const part of request) body += part;
  const { query: source, variables: variableValues, operationName } = JSON.parse(body);
  const result = await graphql({ schema, source, rootValue, variableValues, operationName });
  response.setHeader("content-type", "application/json").end(JSON.stringify(result));
}

const server = createServer(answer);
server.listen(0, "127.0.0.1", () => {
  parentPort.postMessage({ name, sdl, url: `http://127.0.0.1:${server.address().port}/graphql` });
});
