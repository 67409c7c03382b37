// Asks by persisted queries, each time with a new client, as urql and Apollo Client do it by their defaults and by GET.
// node persisted.mjs DOCUMENT URL...: prints a line of JSON for each server, client, method and document.
import { ApolloClient, HttpLink, InMemoryCache } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { Client, fetchExchange } from "@urql/core";
import { persistedExchange } from "@urql/exchange-persisted";
import { parse } from "graphql";
import { createHash } from "node:crypto";

const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const complaints = [];
for (const level of ["warn", "error"]) console[level] = (...words) => complaints.push(words.join(" "));

const variables = { path: "US" };
const [known, ...urls] = process.argv.slice(2);
const documents = { known: parse(known), other: parse(known.replace("query Known", "query Other")) };

const clients = {
  urql: (url, fetch, byGet) => {
    const persisted = persistedExchange(byGet === undefined ? undefined : { preferGetForPersistedQueries: byGet });
    const client = new Client({ url, fetch, exchanges: [persisted, fetchExchange] });
    return (document) => client.query(document, variables).toPromise();
  },
  apollo: (url, fetch, byGet) => {
    const persisted = new PersistedQueryLink({ sha256, useGETForHashedQueries: byGet });
    const client = new ApolloClient({ link: persisted.concat(new HttpLink({ uri: url, fetch })), cache: new InMemoryCache() });
    return (query) => client.query({ query, variables, fetchPolicy: "no-cache", errorPolicy: "all" });
  },
};

// A fetch that notes of each request its method, the status, and the code of its error or else what was sent.
function recording(requests) {
  return async (url, options) => {
    const sent = options.method === "GET" ? Object.fromEntries(new URL(url).searchParams) : JSON.parse(options.body);
    const response = await fetch(url, options);
    const { errors } = await response.clone().json();
    const what = ["query", "extensions"].filter((name) => sent[name]).join("+");
    requests.push(`${options.method} ${what}: ${response.status} ${errors?.[0].extensions.code ?? "data"}`);
    return response;
  };
}

for (const [at, url] of urls.entries()) {
  for (const [client, open] of Object.entries(clients)) {
    for (const byGet of [undefined, true, false]) {
      const requests = [];
      const ask = open(url, recording(requests), byGet);
      for (const name of ["known", "known", "other", "other"]) {
        const { data, error } = await ask(documents[name]);
        const shown = data?.location?.name ?? error?.message;
        console.log(JSON.stringify([at, client, byGet ?? null, name, shown, requests.splice(0)]));
      }
    }
  }
}
console.log(JSON.stringify(complaints));
