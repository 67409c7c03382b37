// Runs Apollo Server with Apollo Gateway before Clade, both with their defaults: node apollo.mjs CLADE_URL
// Prints one line of JSON: the gateway's address.
import { ApolloGateway } from "@apollo/gateway";
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import { composeServices } from "@theguild/federation-composition";
import { subgraphOf } from "./clade.mjs";

process.env.APOLLO_TELEMETRY_DISABLED = "true"; // otherwise the gateway reports to Apollo; its answers are the same
const { supergraphSdl } = composeServices([await subgraphOf(process.argv[2])]);
const server = new ApolloServer({ gateway: new ApolloGateway({ supergraphSdl }) });
const { url } = await startStandaloneServer(server, { listen: { host: "127.0.0.1", port: 0 } });
process.stdout.write(`${JSON.stringify({ url })}\n`);
// The server takes these signals for its own end, which waits for connections that are kept open.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit());
