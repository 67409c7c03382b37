// Walks the children of a category page by page, as a list on a screen that grows, and prints what was shown at last.
// node graphcache-pages.mjs URL PATH PAGE_SIZE
import { Client, fetchExchange, gql } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { getIntrospectionQuery } from "graphql";

const PAGE = gql`
  query Page($path: Path!, $size: Int!, $after: String) {
    category(path: $path) {
      id
      children(first: $size, after: $after) {
        edges { cursor node { id name } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }
  }
`;
const NAME = gql`query Name($id: ID!) { node(id: $id) { id ... on Category { name } } }`;

const [url, path, size] = process.argv.slice(2);
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));

const introspection = await new Client({ url, preferGetMethod: false, exchanges: [fetchExchange] })
  .query(getIntrospectionQuery(), {});
const cache = cacheExchange({
  schema: introspection.data,
  resolvers: {
    Category: { children: relayPagination() },
    Query: { node: (_, { id }) => ({ __typename: "Category", id }) },
  },
});
const client = new Client({ url, preferGetMethod: false, exchanges: [cache, fetchExchange] });

async function ask(query, variables, requestPolicy) {
  const { data, error } = await client.query(query, variables, { requestPolicy });
  if (error) throw error;
  return data;
}

const sizes = [];
let shown;
let after = null;
do {
  const { category } = await ask(PAGE, { path, size: Number(size), after });
  shown = category.children.edges.map((edge) => edge.node);
  sizes.push(shown.length);
  after = category.children.pageInfo.hasNextPage ? category.children.pageInfo.endCursor : null;
} while (after);

// Normalised by id: a node of the list is known without another request.
const names = [];
for (const { id } of shown) {
  const { node } = await ask(NAME, { id }, "cache-only");
  names.push(node.name);
}
console.log(JSON.stringify({ sizes, names, warnings }));
