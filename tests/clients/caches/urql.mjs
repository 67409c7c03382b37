// urql with Graphcache, its normalized cache.
import { Client, fetchExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { getIntrospectionQuery } from "graphql";

export async function open(url, documents) {
  const { data: schema } = await new Client({ url, preferGetMethod: false, exchanges: [fetchExchange] })
    .query(getIntrospectionQuery(), {});
  const cache = cacheExchange({
    schema,
    keys: { TreeChange: () => null, TreeChangeFeed: () => null, DeletedNode: () => null },
    updates: { Mutation: { deleteAssetNode: ({ deleteAssetNode }, _, cache) => cache.invalidate(deleteAssetNode.node) } },
  });
  const client = new Client({ url, preferGetMethod: false, exchanges: [cache, fetchExchange] });
  const data = (result) => {
    if (result.error) throw result.error;
    return result.data;
  };
  return {
    async ask(name, variables) {
      data(await client.query(documents[name], variables, { requestPolicy: "network-only" }));
    },
    async mutate(name, variables) {
      return data(await client.mutation(documents[name], variables));
    },
    async shown(name, variables) {
      return data(await client.query(documents[name], variables, { requestPolicy: "cache-only" }));
    },
  };
}
