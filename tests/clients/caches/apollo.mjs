// Apollo Client with its normalized cache, without React.
import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client";

const TYPES = gql`{ __schema { types { name possibleTypes { name } } } }`;

export async function open(url, documents) {
  const link = new HttpLink({ uri: url, fetch });
  const { data } = await new ApolloClient({ link, cache: new InMemoryCache() }).query({ query: TYPES });
  const interfaces = data.__schema.types.filter((type) => type.possibleTypes);
  const possibleTypes = Object.fromEntries(interfaces.map((type) => [type.name, type.possibleTypes.map(({ name }) => name)]));
  const client = new ApolloClient({ link, cache: new InMemoryCache({ possibleTypes }) });
  return {
    async ask(name, variables) {
      await client.query({ query: documents[name], variables, fetchPolicy: "network-only" });
    },
    async mutate(name, variables) {
      const { data } = await client.mutate({ mutation: documents[name], variables, update });
      return data;
    },
    shown(name, variables) {
      return client.readQuery({ query: documents[name], variables });
    },
  };
}

function update(cache, { data }) {
  const deleted = data.deleteAssetNode?.node;
  if (deleted) cache.evict({ id: cache.identify(deleted) });
}
