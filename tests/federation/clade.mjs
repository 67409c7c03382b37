// Clade as a subgraph of what is composed: its name, address and schema, which the server at the address is asked for.
import { parse } from "graphql";

export async function subgraphOf(url) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: "{ _service { sdl } }" }),
  });
  return { name: "clade", url, typeDefs: parse((await response.json()).data._service.sdl) };
}
