// Runs all audits of graphql-http against the address that it is given, and prints each as a line of JSON.
import { serverAudits } from "graphql-http";

for (const audit of serverAudits({ url: process.argv[2] })) {
  const { name, status, reason } = await audit.fn();
  console.log(JSON.stringify({ name, status, reason }));
}
