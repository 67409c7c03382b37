// Bars: the number of nodes of each level.
import { html } from "./vendor/preact.js";
import { number } from "./words.js";

/**
 * The length of a bar in percent of the longest, in proportion to the number, or to its logarithm.
 * @param {number} count
 * @param {number} most
 * @param {boolean} logarithmic
 */
export function lengthOf(count, most, logarithmic) {
  if (count <= 0) return 0;
  return 100 * (logarithmic ? Math.log(count + 1) / Math.log(most + 1) : count / most);
}

/**
 * A table with a bar in each row; bars are logarithmic where the numbers differ by a factor of 100 or more.
 * @param {{counts: {level: string, title: string, count: number}[]}} props
 */
export function LevelBars({ counts }) {
  const numbers = counts.map((one) => one.count).filter((count) => count > 0);
  const most = Math.max(...numbers, 1);
  const logarithmic = most / Math.min(...numbers, most) >= 100;
  return html`<table class="bars">
    <caption>Nodes by level${logarithmic ? " (bars are logarithmic)" : ""}</caption>
    <tbody>
      ${counts.map(({ level, title, count }) => html`<tr key=${level}>
        <th scope="row">${title}</th>
        <td class="bars-count">${number(count)}</td>
        <td class="bars-bar" aria-hidden="true"><svg width="100%" height="8">
          <rect width="${lengthOf(count, most, logarithmic)}%" height="8" rx="2" /></svg></td>
      </tr>`)}
    </tbody>
  </table>`;
}
