// Map: nodes that have coordinates, on an outline of the world.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { number, quantity } from "./words.js";
import { BORDERS, LAND, STEPS } from "./world.js";

/** @typedef {{path: string, name: string, latitude: number, longitude: number, weight?: number}} Point - the heaviest have labels */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/** @typedef {Point & {x: number, y: number}} Spot - with its place in the drawing, in degrees */

const MAX_POINTS = 1000;
const MAX_LABELS = 15;
const [SMALLEST, SMALLEST_OF_ONE] = [4, 10]; // degrees of latitude that a map of several places or of one shows at least
const RATIO = 2; // width to height
const [RADIUS, LETTERS] = [5, 12]; // of circles and of labels, in pixels
const WORLD = { x: -180, y: -84, width: 360, height: 168 };

/**
 * A map of up to 1,000 points. One of them is in the order of Tab; arrow keys lead to the others.
 * @param {{points: Point[], onOpen: (path: string) => void}} props
 */
export function WorldMap({ points, onOpen }) {
  const [whole, setWhole] = useState(false);
  const [active, setActive] = useState(0);
  const [width, setWidth] = useState(700);
  const map = useRef(/** @type {SVGSVGElement | null} */ (null));
  useEffect(() => {
    const measure = () => setWidth(map.current?.clientWidth || 700);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);

  const { spots, near, scale, shift } = useMemo(() => placed(points.slice(0, MAX_POINTS)), [points]);
  const box = whole || !spots.length ? { ...WORLD, x: shift ? 0 : -180 } : near;
  const stretch = box === near ? scale : 1;
  const drawn = stretch === scale ? spots : spots.map((spot) => ({ ...spot, x: spot.x / scale }));
  const pixel = box.width / width;
  const labels = labelled(drawn, box, pixel);
  const current = drawn[Math.min(active, drawn.length - 1)];

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const to = step ? active + step : { Home: 0, End: drawn.length - 1 }[event.key];
    if (event.key === "Enter" && current) onOpen(current.path);
    if (to === undefined || !drawn[to]) return;
    event.preventDefault();
    setActive(to);
    /** @type {SVGElement | undefined} */ (map.current?.querySelectorAll("circle")[to])?.focus();
  };
  return html`<figure class="map">
    <svg ref=${map} viewBox="${box.x} ${box.y} ${box.width} ${box.height}" role="group" onKeyDown=${onKeyDown}
      aria-label="Map of ${quantity(drawn.length, "place")}">
      <g aria-hidden="true" transform="scale(${stretch} 1)"><${Outline} /></g>
      ${box === near && html`<${Inset} box=${box} scale=${scale} />`}
      ${drawn.map((spot, place) => html`<circle key=${spot.path} cx=${spot.x} cy=${spot.y} r=${RADIUS * pixel} role="link"
        tabindex=${spot === current ? 0 : -1} aria-label=${spot.name} onFocus=${() => setActive(place)}
        onClick=${() => onOpen(spot.path)}><title>${spot.name}</title></circle>`)}
      ${labels.map(({ spot, isLeft }) => html`<text key=${spot.path} aria-hidden="true" text-anchor=${isLeft ? "end" : "start"}
        x=${spot.x + (isLeft ? -1.6 : 1.6) * RADIUS * pixel} y=${spot.y + 0.35 * LETTERS * pixel} font-size=${LETTERS * pixel}>${spot.name}</text>`)}
    </svg>
    <figcaption>
      <span>${quantity(drawn.length, "place")}${points.length > MAX_POINTS ? ` of ${number(points.length)}` : ""}</span>
      <button type="button" aria-pressed=${whole} onClick=${() => setWhole(!whole)}>Whole world</button>
    </figcaption>
  </figure>`;
}

const Outline = () => [-360, 0, 360].map((turn) => html`<g key=${turn}
  transform="translate(${turn} 0) scale(${1 / STEPS})">
  <path class="map-land" d=${LAND} /><path class="map-border" d=${BORDERS} /></g>`);

/**
 * A small world in the corner of a map, with the part that the map shows.
 * @param {{box: Box, scale: number}} props
 */
function Inset({ box, scale }) {
  const [width, height] = [box.width / 5, (box.width / 5) * (WORLD.height / WORLD.width)];
  if (box.width / scale > WORLD.width / 2) return null; // it shows nothing new
  const left = box.x / scale;
  const start = left + box.width / scale > 180 ? 0 : -180; // the Pacific in the middle where the map is there
  return html`<svg class="map-inset" aria-hidden="true" x=${box.x} y=${box.y + box.height - height} width=${width} height=${height}
    viewBox="${start} ${WORLD.y} ${WORLD.width} ${WORLD.height}">
    <rect class="map-sea" x=${start} y=${WORLD.y} width=${WORLD.width} height=${WORLD.height} />
    ${[-360, 0, 360].map((turn) => html`<path key=${turn} class="map-land" d=${LAND} transform="translate(${turn} 0) scale(${1 / STEPS})" />`)}
    <rect class="map-part" x=${left} y=${box.y} width=${box.width / scale} height=${box.height} />
  </svg>`;
}

/**
 * The spots of points, with the box around them. Longitudes are narrowed as they are at the latitude of its middle.
 * @param {Point[]} points
 */
function placed(points) {
  const shift = shiftOf(points);
  const latitudes = points.map((point) => point.latitude);
  const middle = points.length ? (Math.min(...latitudes) + Math.max(...latitudes)) / 2 : 0;
  const scale = Math.max(0.2, Math.cos((middle * Math.PI) / 180));
  const spots = points.map((point) => {
    const longitude = point.longitude < 0 ? point.longitude + shift : point.longitude;
    return { ...point, x: longitude * scale, y: -point.latitude };
  });
  return { spots, near: boxOf(spots), scale, shift };
}

/**
 * Degrees to add to western longitudes: 360 where the points fit in a narrower map across the date line.
 * @param {Point[]} points
 */
function shiftOf(points) {
  const span = (/** @type {number[]} */ all) => Math.max(...all) - Math.min(...all);
  const plain = points.map((point) => point.longitude);
  const shifted = plain.map((one) => (one < 0 ? one + 360 : one));
  return points.length && span(shifted) + 1 < span(plain) ? 360 : 0;
}

/** The part of the drawing that shows all spots, with a margin. @param {Spot[]} spots @returns {Box} */
function boxOf(spots) {
  const [xs, ys] = [spots.map((spot) => spot.x), spots.map((spot) => spot.y)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const smallest = spots.length > 1 ? SMALLEST : SMALLEST_OF_ONE;
  const height = Math.max(smallest, (bottom - top) * 1.3, ((right - left) * 1.3) / RATIO);
  const width = height * RATIO;
  return { x: (left + right - width) / 2, y: (top + bottom - height) / 2, width, height };
}

/**
 * The spots that have a label, the heaviest first, and on which side: no label covers another one or its spot.
 * @param {Spot[]} spots
 * @param {Box} box
 * @param {number} pixel
 */
function labelled(spots, box, pixel) {
  const [line, letter] = [1.2 * LETTERS * pixel, 0.6 * LETTERS * pixel];
  /** @type {{spot: Spot, isLeft: boolean, from: number, to: number}[]} */
  const chosen = [];
  for (const spot of [...spots].sort((one, other) => (other.weight ?? 0) - (one.weight ?? 0))) {
    const length = (spot.name.length + 3) * letter;
    const sides = [{ spot, isLeft: false, from: spot.x, to: spot.x + length }, { spot, isLeft: true, from: spot.x - length, to: spot.x }];
    const free = sides.find(({ from, to }) => from > box.x && to < box.x + box.width &&
      chosen.every((one) => Math.abs(one.spot.y - spot.y) > line || one.from > to || one.to < from));
    if (free) chosen.push(free);
    if (chosen.length === MAX_LABELS) break;
  }
  return chosen;
}
