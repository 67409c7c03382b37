// Relay's runtime with the artifacts that its compiler made of the operations.
import { createRequire } from "node:module";
import { join } from "node:path";
import relay from "relay-runtime";

const { Environment, Network, RecordSource, Store, commitMutation, createOperationDescriptor, fetchQuery } = relay;

export async function open(url, _, artifacts) {
  const require = createRequire(import.meta.url);
  const compiled = (name) => require(join(artifacts, `${name}.graphql.js`));
  const environment = new Environment({
    network: Network.create(async ({ text }, variables) => {
      const body = JSON.stringify({ query: text, variables });
      return (await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
    }),
    store: new Store(new RecordSource()),
  });
  return {
    async ask(name, variables) {
      environment.retain(createOperationDescriptor(compiled(name), variables));
      await fetchQuery(environment, compiled(name), variables, { networkCacheConfig: { force: true } }).toPromise();
    },
    mutate(name, variables) {
      return new Promise((onCompleted, onError) => {
        commitMutation(environment, { mutation: compiled(name), variables, updater, onCompleted, onError });
      });
    },
    shown(name, variables) {
      const operation = createOperationDescriptor(compiled(name), variables);
      return environment.check(operation).status === "available" ? environment.lookup(operation.fragment).data : null;
    },
  };
}

function updater(store, data) {
  const deleted = data.deleteAssetNode?.node;
  if (deleted) store.delete(deleted.id);
}
