// Page of the tests: mounts one panel, as its address says, over the server's data. What panels report is in `reported`.
import { Api } from "/panels/api.js";
import { History } from "/panels/history.js";
import { WorldMap } from "/panels/map.js";
import { LevelBars } from "/panels/panels.js";
import { html, render } from "/panels/vendor/preact.js";
import { openWrite, WriteMenu } from "/panels/writing.js";

const HIERARCHIES = `{ hierarchies { name title field listField searchField searchNeedsUnder mayWrite levels { name title under mayBeRoot inputField
  attributes { name type selection values description required minimum maximum maxLength pattern computed } } } }`;

const api = new Api("/graphql");
const given = new URLSearchParams(location.search);
const panel = document.querySelector("#panel");
const reported = (globalThis.reported = []);

async function show(path) {
  const hierarchy = hierarchies.find((one) => one.name === (given.get("hierarchy") ?? "LOCATION"));
  const document_ = `query ($path: Path!) { node: ${hierarchy.field}(path: $path) { id path level revision } }`;
  const node = path ? (await api.ask(document_, { path })).data.node : null;
  const onDone = ({ path: to, undo }) => {
    reported.push(to);
    globalThis.undo = async () => onDone(await openWrite(undo));
    show(to);
  };
  const props = { api, hierarchy, node };
  const parts = {
    write: () => html`<p id="path">${node?.path}</p><${WriteMenu} ...${props} onDone=${onDone} />`,
    history: () => html`<${History} ...${props} onDone=${onDone} />`,
    move: () => html`<button type="button" onClick=${() =>
      openWrite({ api, hierarchy, verb: "move", path, draft: { to: given.get("to") ?? "" } }).then((written) => reported.push(written?.path))}>Drop</button>`,
    map: () => html`<${WorldMap} points=${globalThis.points} onOpen=${(to) => reported.push(to)} />`,
    bars: () => html`<${LevelBars} counts=${globalThis.counts} />`,
  };
  render(given.get("panel") === "all" ? ["write", "map", "bars", "history"].map((name) => parts[name]()) : parts[given.get("panel")](), panel);
  document.body.dataset.ready = "true";
}

const { hierarchies } = (await api.ask(HIERARCHIES)).data;
await show(given.get("path"));
