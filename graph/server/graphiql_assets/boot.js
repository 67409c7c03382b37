// Starts GraphiQL on this page, with a tab for each example query.
"use strict";

// Numbers that JavaScript rounds stay as they are written: in the variables, also when these are prettified, and in the
// answers. Browsers without JSON.rawJSON get texts of the integers, which a Long takes, too.
const parseJson = JSON.parse;
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const LONG_NUMBER = /^-?\d{16,}$/;

function exact(key, value, { source }) {
  const isRounded = typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return isRounded && key ? JSON.rawJSON(source) : value; // the editors parse numbers by themselves, without a key
}

JSON.parse = (text, reviver) => {
  if (JSON.rawJSON) return parseJson(text, reviver ?? exact);
  const quoted = (part) => (LONG_NUMBER.test(part) ? `"${part}"` : part);
  return parseJson(String(text).replace(STRING_OR_NUMBER, quoted), reviver);
};

const element = React.createElement;
const post = GraphiQL.createFetcher({
  url: location.pathname,
  fetch: async (...request) => {
    const text = await (await fetch(...request)).text();
    return { json: () => JSON.parse(text) };
  },
  headers: { "clade-reads": "2" },
  enableIncrementalDelivery: false,
});

// The header editor holds a line for an API key; while it ends in "…" or is empty it is not sent.
const PLACEHOLDER = JSON.stringify({ Authorization: "Bearer clade_…" }, null, 2);

function filledHeaders(headers) {
  const texts = Object.entries(headers ?? {}).map(([name, value]) => [name, value?.rawJSON ?? value]);
  return Object.fromEntries(texts.filter(([, value]) => value && !String(value).endsWith("…")));
}

// A dialog locks the page's scrolling by a <style> with text, which the policy forbids; this page does not scroll.
document.head.appendChild = function (node) {
  return node.nodeName === "STYLE" ? node : Node.prototype.appendChild.call(this, node);
};

function showDocumentation() {
  document.querySelector('[aria-label="Show Documentation Explorer"]')?.click();
}

// What a call read: its key condition, or its keys.
function condition({ keyCondition, after, select, keys, moreKeys }) {
  if (keys) {
    return [...keys, ...(moreKeys ? [`and ${moreKeys} more keys`] : [])].join("\n");
  }
  return [keyCondition, after && `after ${JSON.stringify(after)}`, select].filter(Boolean).join(", ");
}

function quantity(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function Call({ call }) {
  const { round, operation, index, limit, items, units } = call;
  const bounds = limit === undefined ? "" : `limit ${limit}, `;
  return element(
    "li",
    null,
    `Round ${round}: ${operation} of ${index}, ${bounds}${quantity(items, "item")}, ${quantity(units, "unit")}`,
    element("code", null, condition(call)),
  );
}

// The calls of the last answer, closed until somebody opens it.
function Calls({ calls, moreCalls = 0, fromCache }) {
  const cached = `from the cache: ${quantity(fromCache.pages, "page")}, ${quantity(fromCache.records, "record")}`;
  return element(
    "details",
    null,
    element("summary", null, `${quantity(calls.length + moreCalls, "call")}; ${cached}`),
    element(
      "ul",
      { tabIndex: 0, "aria-label": "Calls of the store" },
      calls.map((call, row) => element(Call, { key: row, call })),
      moreCalls > 0 && element("li", null, quantity(moreCalls, "more call")),
    ),
  );
}

// The footer: what the last answer cost, from its extensions.reads.
function Footer({ reads, trace }) {
  const cost = reads && Object.entries(reads).map(([name, value]) => `${name} ${value}`);
  return element(
    "div",
    { className: "clade-footer" },
    element("span", { role: "status" }, `Reads: ${cost?.join(", ") ?? "none yet"}`),
    element("button", { type: "button", onClick: showDocumentation }, "The schema's documentation"),
    trace?.calls && element(Calls, trace),
  );
}

function tabOf({ query, variables }) {
  return { query, variables: Object.keys(variables).length ? JSON.stringify(variables, null, 2) : "" };
}

const NO_COST = { reads: null, trace: null };

function Playground({ examples, linked }) {
  const [{ reads, trace }, setCost] = React.useState(NO_COST);
  const fetcher = React.useCallback(async (params, options) => {
    const answer = await post(params, { ...options, headers: filledHeaders(options?.headers) });
    if (params.operationName === "IntrospectionQuery") {
      return answer;
    }
    if (!answer.extensions?.reads) {
      setCost(NO_COST);
      return answer;
    }
    // The calls are shown in the footer, and not once more in the answer.
    const { calls, moreCalls, fromCache, ...reads } = answer.extensions.reads;
    setCost({ reads, trace: { calls, moreCalls, fromCache } });
    return { ...answer, extensions: { ...answer.extensions, reads } };
  }, []);
  return element(
    GraphiQL,
    {
      fetcher,
      defaultTabs: [...(linked ? [linked] : []), ...examples.map(tabOf)].map((tab) => ({ ...tab, headers: PLACEHOLDER })),
      ...(linked && { ...linked, headers: PLACEHOLDER }), // where the tabs of an earlier visit are restored
      defaultHeaders: PLACEHOLDER,
      defaultEditorToolsVisibility: "variables",
    },
    element(GraphiQL.Logo, null, "Clade"),
    element(GraphiQL.Footer, null, element(Footer, { reads, trace })),
  );
}

// The query of a link such as those of the explorer, #query=…&variables=…: after the "#", so that no log has it.
function linkedQuery() {
  const given = new URLSearchParams(location.hash.slice(1));
  return given.has("query") ? { query: given.get("query"), variables: given.get("variables") ?? "" } : null;
}

async function start() {
  const answer = await fetch(`${location.pathname}/examples.json`);
  const examples = answer.ok ? JSON.parse(await answer.text()) : [];
  ReactDOM.createRoot(document.getElementById("graphiql")).render(element(Playground, { examples, linked: linkedQuery() }));
}

start();
