// Starts GraphiQL on this page, with a tab for each example query.
"use strict";

const element = React.createElement;
const post = GraphiQL.createFetcher({
  url: location.pathname,
  headers: { "clade-reads": "1" },
  enableIncrementalDelivery: false,
});

// The header editor holds a line for an API key; while it ends in "…" or is empty it is not sent.
const PLACEHOLDER = JSON.stringify({ Authorization: "Bearer clade_…" }, null, 2);

function filledHeaders(headers) {
  return Object.fromEntries(Object.entries(headers ?? {}).filter(([, value]) => value && !String(value).endsWith("…")));
}

// A dialog locks the page's scrolling by a <style> with text, which the policy forbids; this page does not scroll.
document.head.appendChild = function (node) {
  return node.nodeName === "STYLE" ? node : Node.prototype.appendChild.call(this, node);
};

function showDocumentation() {
  document.querySelector('[aria-label="Show Documentation Explorer"]')?.click();
}

// The footer: what the last answer cost, from its extensions.reads.
function Footer({ reads }) {
  const cost = reads && Object.entries(reads).map(([name, value]) => `${name} ${value}`);
  return element(
    "div",
    { className: "clade-footer" },
    element("span", { role: "status" }, `Reads: ${cost?.join(", ") ?? "none yet"}`),
    element("button", { type: "button", onClick: showDocumentation }, "The schema's documentation"),
  );
}

function Playground({ examples }) {
  const [reads, setReads] = React.useState(null);
  const fetcher = React.useCallback(async (params, options) => {
    const answer = await post(params, { ...options, headers: filledHeaders(options?.headers) });
    if (params.operationName !== "IntrospectionQuery") {
      setReads(answer.extensions?.reads ?? null);
    }
    return answer;
  }, []);
  return element(
    GraphiQL,
    {
      fetcher,
      defaultTabs: examples.map(({ query, variables }) => ({
        query,
        variables: Object.keys(variables).length ? JSON.stringify(variables, null, 2) : "",
        headers: PLACEHOLDER,
      })),
      defaultHeaders: PLACEHOLDER,
      defaultEditorToolsVisibility: "variables",
    },
    element(GraphiQL.Logo, null, "Clade"),
    element(GraphiQL.Footer, null, element(Footer, { reads })),
  );
}

async function start() {
  const answer = await fetch(`${location.pathname}/examples.json`);
  const examples = answer.ok ? await answer.json() : [];
  ReactDOM.createRoot(document.getElementById("graphiql")).render(element(Playground, { examples }));
}

start();
