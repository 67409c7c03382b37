// The field for an API key or a token, which stays in memory: closing the page forgets it.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";

/** @param {{credential: string, refusals: number, onUse: (credential: string) => void}} props - it opens at each refusal */
export function Credential({ credential, refusals, onUse }) {
  const [isOpen, setOpen] = useState(refusals > 0);
  const [text, setText] = useState(credential);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => setOpen(refusals > 0), [refusals]);
  useEffect(() => {
    if (isOpen) field.current?.focus();
  }, [isOpen]);
  const use = (/** @type {string} */ value) => {
    setText(value);
    setOpen(false);
    onUse(value);
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") use(text.trim());
    if (event.key === "Escape") setOpen(false);
  };
  return html`<div class="credential">
    <button aria-expanded=${String(isOpen)} aria-controls="credential" onClick=${() => setOpen(!isOpen)}>
      ${credential ? "Key in use" : "Key"}
    </button>
    <div id="credential" class="popup panel" hidden=${!isOpen}>
      <label>API key or token
        <input
          ref=${field} type="password" autocomplete="off" spellcheck=${false} value=${text} onKeyDown=${press}
          onInput=${(/** @type {InputEvent} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)}
        />
      </label>
      <p class="quiet">It stays in this page and is forgotten when you close it.</p>
      <button class="primary" onClick=${() => use(text.trim())}>Use it</button>
      ${credential && html` <button onClick=${() => use("")}>Forget it</button>`}
    </div>
  </div>`;
}
