// The panels between a node and its children: writing, counts by level, map and history.

/** @param {object} props */
export function Panels(props) {
  return props && null;
}
