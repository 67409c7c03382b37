// The field for an API key or a token, which stays in memory: closing the page forgets it.
import { html, useState } from "./vendor/preact.js";
import { Icon, Menu } from "./parts.js";

/** @param {{credential: string, refusals: number, onUse: (credential: string) => void}} props - it opens at each refusal */
export function Credential({ credential, refusals, onUse }) {
  const [text, setText] = useState(credential);
  return html`<${Menu} label=${html`<${Icon} name="key" />${credential ? "Key in use" : "Key"}`} asked=${refusals}>${(/** @type {() => void} */ close) => {
    const use = (/** @type {string} */ value) => {
      setText(value);
      close();
      onUse(value);
    };
    return html`<label>API key or token
        <input
          type="password" autocomplete="off" spellcheck=${false} value=${text}
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Enter" && use(text.trim())}
          onInput=${(/** @type {InputEvent} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)}
        />
      </label>
      <p class="quiet">It stays in this page and is forgotten when you close it.</p>
      <button type="button" class="primary" onClick=${() => use(text.trim())}>Use it</button>
      ${credential && html` <button type="button" onClick=${() => use("")}>Forget it</button>`}`;
  }}<//>`;
}
