// The line at the bottom: what the last click cost, with the queries that were sent.
import { html, useEffect, useState } from "./vendor/preact.js";
import { number, quantity } from "./format.js";
/** @import { Call, StoreCall } from "./api" */

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);

/** What some calls cost, as a sentence. @param {Call[]} calls */
export function costOf(calls) {
  if (!calls.length) return "Nothing was read yet.";
  const milliseconds = Math.max(1, Math.round(Math.max(...calls.map((call) => call.ended)) - Math.min(...calls.map((call) => call.begun))));
  const sent = `${quantity(calls.length, "query")} in ${milliseconds} ms`;
  const reads = calls.flatMap((call) => call.reads ?? []);
  if (!reads.length) return `${sent}.`;
  const units = sum(reads.map((one) => one.units));
  const requests = sum(reads.map((one) => one.requests));
  if (!requests) return `${sent}: nothing had to be read.`;
  const items = sum(reads.map((one) => one.items));
  return `${sent}: ${quantity(requests, "read")} of the store, ${quantity(items, "item")}, ${quantity(Math.round(units * 10) / 10, "read unit")}.`;
}

/** The address of GraphiQL with this query; after the "#" it is sent to no server. @param {string} graphiql @param {Call} call */
export function graphiqlAddress(graphiql, { document, variables }) {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== null));
  return `${graphiql}#${new URLSearchParams({ query: document, variables: JSON.stringify(given, null, 2) })}`;
}

/** @param {{calls: Call[], graphiql: string}} props `graphiql` is its address, empty without it */
export function Cost({ calls, graphiql }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const close = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && setOpen(false);
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, []);
  return html`<footer class="cost">
    ${isOpen && html`<div id="calls" class="calls" tabindex="0" role="region" aria-label="Queries of the last click">
      ${calls.map((call, place) => html`<${SentQuery} key=${place} call=${call} graphiql=${graphiql} />`)}
      ${!calls.length && html`<p class="quiet">Open a node first.</p>`}
    </div>`}
    <div class="bar">
      <span role="status">${costOf(calls)}</span>
      <button aria-expanded=${String(isOpen)} aria-controls="calls" onClick=${() => setOpen(!isOpen)}>
        ${isOpen ? "Hide the query" : "Show the query"}
      </button>
    </div>
  </footer>`;
}

/** @param {{call: Call, graphiql: string}} props */
function SentQuery({ call, graphiql }) {
  const { reads } = call;
  return html`<article>
    <div class="bar">
      <span class="quiet">${costOf([call])}</span>
      ${graphiql && html`<a class="button" href=${graphiqlAddress(graphiql, call)} target="_blank" rel="noopener">Open in GraphiQL</a>`}
    </div>
    ${reads?.calls?.length ? html`<ol class="reads">${reads.calls.map((read) => html`<li><${StoreRead} read=${read} /></li>`)}</ol>` : null}
    <pre><code>${call.document}</code></pre>
    <pre class="variables"><code>${JSON.stringify(call.variables)}</code></pre>
  </article>`;
}

/** @param {{read: StoreCall}} props */
function StoreRead({ read }) {
  const condition = read.keyCondition ?? [...(read.keys ?? []).slice(0, 2), read.keys && read.keys.length > 2 ? "…" : ""].join(" ");
  return html`<strong>${read.operation}</strong> of ${read.index}: ${quantity(read.items, "item")}, ${quantity(read.units, "unit")} <code>${condition}</code>`;
}
