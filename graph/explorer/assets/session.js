// Session: the key of the caller, the hierarchies that it may read, and what was read of the one that is shown. Its first
// requests are sent while the modules of the page's parts still load.
import { Api } from "./api.js";
import { HIERARCHIES } from "./documents.js";
import { Model, sentence } from "./model.js";
import { placeOf } from "./words.js";
/** @import { Hierarchy } from "./api" */

export class Session {
  /** @type {Hierarchy[]} */
  hierarchies = [];
  /** A sentence where nothing can be shown. */
  error = "";
  /** Called when anything was read. */
  onChange = () => {};
  /** @type {Model | null} */
  #model = null;

  /** @param {string} url of the GraphQL endpoint */
  constructor(url) {
    this.api = new Api(url, () => this.onChange());
  }

  /** Read which hierarchies there are, and of one what the address of the page names. */
  async start() {
    this.error = "";
    this.onChange();
    this.api.begin();
    try {
      this.hierarchies = (await this.api.ask(HIERARCHIES)).data.hierarchies;
      if (!this.hierarchies.length) this.error = "Nothing here may be read with this key; use another one.";
      const { hierarchy, path } = placeOf(location.hash);
      const model = this.model(hierarchy);
      model?.begin(model.hierarchy.name === hierarchy ? path : "");
    } catch (failure) {
      this.hierarchies = [];
      this.error = sentence(failure);
    }
    this.onChange();
  }

  /** The model of the hierarchy of this name, else of the first; null while there is none. @param {string} name */
  model(name) {
    const hierarchy = this.hierarchies.find((one) => one.name === name) ?? this.hierarchies[0];
    if (!hierarchy) return null;
    if (this.#model?.hierarchy !== hierarchy) this.#model = new Model(this.api, hierarchy, () => this.onChange());
    return this.#model;
  }
}

/** The session of this page. */
export const session = new Session("graphql");
session.start();
