// What three caches keep of a node after its deletion, which first has faults, then not: their functions are those of
// docs/frontends.md, in the file that is given.
import { InMemoryCache, gql } from "@apollo/client";
import { Client } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import relay from "relay-runtime";
import { map } from "wonka";

const { update, updates, updater } = await import(process.argv[2]);
const CITY = { __typename: "City", id: "location:1" };
const QUERY = "{ city { id __typename } }";
const MUTATION = "mutation { deleteLocation { node { id __typename } } }";

async function kept(node) {
  const data = { deleteLocation: { __typename: "DeleteLocationPayload", node } };

  const apollo = new InMemoryCache();
  apollo.writeQuery({ query: gql(QUERY), data: { city: CITY } });
  update(apollo, { data });

  const respond = () => map((operation) => ({ operation, data: operation.kind === "query" ? { city: CITY } : data }));
  const urql = new Client({ url: "none:", exchanges: [cacheExchange({ updates }), respond] });
  await urql.query(QUERY, {});
  await urql.mutation(MUTATION, {});
  const cached = await urql.query(QUERY, {}, { requestPolicy: "cache-only" });

  const store = new relay.Store(new relay.RecordSource());
  const environment = new relay.Environment({ network: relay.Network.create(() => {}), store });
  environment.commitUpdate((proxy) => proxy.create(CITY.id, "City"));
  environment.commitUpdate((proxy) => updater(proxy, data));

  return [apollo.extract()[`City:${CITY.id}`], cached.data?.city, store.getSource().get(CITY.id)].map(Boolean);
}

console.log(JSON.stringify([await kept(null), await kept(CITY)]));
