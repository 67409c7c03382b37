// Starts GraphiQL on the page that it stands in, with a tab for each example.
"use strict";

const element = React.createElement;
const post = GraphiQL.createFetcher({
  url: location.pathname,
  headers: { "clade-reads": "1" },
});

// The header editor opens with a line for a key; left empty it is not sent.
function fetcher(params, options) {
  const filled = Object.entries(options?.headers ?? {}).filter(([, value]) => value !== "");
  return post(params, { ...options, headers: Object.fromEntries(filled) });
}

// A dialog locks the page's scrolling by a <style> with text, which the policy forbids; this page does not scroll.
document.head.appendChild = function (node) {
  return node.nodeName === "STYLE" ? node : Node.prototype.appendChild.call(this, node);
};

function showDocumentation() {
  document.querySelector('[aria-label="Show Documentation Explorer"]')?.click();
}

function Playground({ examples }) {
  return element(
    GraphiQL,
    {
      fetcher,
      defaultTabs: examples.map((query) => ({ query })),
      defaultHeaders: JSON.stringify({ authorization: "" }, null, 2),
    },
    element(GraphiQL.Logo, null, "Clade"),
    element(
      GraphiQL.Footer,
      null,
      element(
        "div",
        { className: "clade-footer" },
        element("span", null, "extensions.reads in an answer tells what it cost."),
        element("button", { type: "button", onClick: showDocumentation }, "The schema's documentation"),
      ),
    ),
  );
}

// Two blank lines divide the examples.
async function start(folder) {
  const answer = await fetch(new URL("examples.graphql", folder));
  const examples = (await answer.text()).trim().split("\n\n\n");
  ReactDOM.createRoot(document.getElementById("graphiql")).render(element(Playground, { examples }));
}

start(new URL(".", document.currentScript.src));
