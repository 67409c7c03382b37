// Nodes in memory. The file has the byte order of the ids, so the subtree of the node at index i is the slice (i, end).
import { readFileSync } from 'node:fs'

export function memory(file) {
  const nodes = []
  const byId = new Map()
  const roots = []
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (!line) continue
    const { path, ...fields } = JSON.parse(line)
    const parent = path.length > 1 ? byId.get(path.slice(0, -1).join('#')) : null
    const node = { id: path.join('#'), ...fields, parent, childNodes: [], index: nodes.length, end: nodes.length + 1 }
    nodes.push(node)
    byId.set(node.id, node)
    ;(parent ? parent.childNodes : roots).push(node)
    for (let up = parent; up; up = up.parent) up.end = nodes.length
  }
  return {
    get: (id) => byId.get(id) ?? null,
    countries: (first) => take(roots, first),
    parent: (node) => node.parent,
    children: (node, first) => take(node.childNodes, first),
    ancestors(node) {
      const chain = []
      for (let up = node.parent; up; up = up.parent) chain.unshift(up)
      return chain
    },
    descendants(node, first, level) {
      const limit = first ?? Infinity
      if (level == null) return nodes.slice(node.index + 1, Math.min(node.end, node.index + 1 + limit))
      return take(nodes.slice(node.index + 1, node.end).filter((one) => one.level === level), first)
    },
  }
}

const take = (list, first) => (first == null || first >= list.length ? list : list.slice(0, first))
