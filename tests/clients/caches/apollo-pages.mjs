// Walks lists page by page through Apollo Client's cache as the guide makes it, by fragments on interfaces, then writes.
// node apollo-pages.mjs CACHE URL PATH: prints what the cache shows after each step, without another request.
import { ApolloClient, HttpLink, gql } from "@apollo/client";
import { pathToFileURL } from "node:url";

const [made, url, path] = process.argv.slice(2);
const complaints = [];
for (const level of ["warn", "error"]) console[level] = (...words) => complaints.push(words.join(" "));

const { cache } = await import(pathToFileURL(made));
let requests = 0;
const counted = (...words) => {
  requests += 1;
  return fetch(...words);
};
const client = new ApolloClient({ link: new HttpLink({ uri: url, fetch: counted }), cache });

const NAMED = gql`fragment Named on Node { id ... on TreeNode { name levelName } ... on CategoryNode { level } }`;
const LIST = gql`
  query List($path: Path!, $after: String, $orderBy: [CategoryNodeOrderBy!]) {
    categoryNode(path: $path) {
      id
      children(first: 10, after: $after, orderBy: $orderBy) {
        edges { cursor node { ...Named } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }
  }
  ${NAMED}
`;
const NODE = gql`query Node($id: ID!) { node(id: $id) { ...Named } } ${NAMED}`;
const RENAME = gql`
  mutation Rename($path: Path!, $name: String!) { updateCategoryNode(input: {node: {path: $path}, name: $name}) { node { ...Named } } }
  ${NAMED}
`;
const DELETE = gql`mutation Delete($path: Path!) { deleteCategoryNode(input: {node: {path: $path}}) { node { id } } }`;
const byName = { path, orderBy: [{ field: "NAME", direction: "DESC" }] };

const listed = (variables) => client.readQuery({ query: LIST, variables })?.categoryNode.children.edges ?? [];
const names = (variables) => listed(variables).map(({ node }) => node.name);

async function walk(variables) {
  await client.query({ query: LIST, variables });
  const list = client.watchQuery({ query: LIST, variables });
  const watching = list.subscribe(() => {});
  const sizes = [];
  for (;;) {
    sizes.push(listed(variables).length);
    const { hasNextPage, endCursor } = client.readQuery({ query: LIST, variables }).categoryNode.children.pageInfo;
    if (!hasNextPage) break;
    await list.fetchMore({ variables: { after: endCursor } });
  }
  watching.unsubscribe();
  return sizes;
}

const sizes = await walk({ path });
const sortedSizes = await walk(byName);
const walked = { plain: names({ path }), sorted: names(byName) };
const { id } = listed({ path })[12].node;
await client.query({ query: NODE, variables: { id } });

const before = requests;
await client.mutate({ mutation: RENAME, variables: { path: `${path}/12`, name: "renamed" } });
const renamed = { plain: names({ path })[12], node: client.readQuery({ query: NODE, variables: { id } }).node.name };
await client.mutate({
  mutation: DELETE,
  variables: { path: `${path}/13` },
  update: (cache, { data }) => cache.evict({ id: cache.identify(data.deleteCategoryNode.node) }),
});
const deleted = { plain: names({ path }), sorted: names(byName) };
process.stdout.write(`${JSON.stringify({ sizes, sortedSizes, walked, renamed, deleted, writes: requests - before, complaints })}\n`);
