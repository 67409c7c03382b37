// Schema and resolvers of all servers here: over the lines of DATA in memory, or over DynamoDB at DYNAMO_ENDPOINT.
import { readFileSync } from 'node:fs'

const here = (name) => new URL(name, import.meta.url)
export const typeDefs = readFileSync(here('schema.graphql'), 'utf8')

async function source() {
  if (!process.env.DATA) return (await import('./dynamodb.mjs')).dynamodb
  const nodes = (await import('./memory.mjs')).memory(process.env.DATA)
  return () => nodes
}
const open = await source()
export const context = () => ({ nodes: open() })

export const resolvers = {
  Query: {
    location: (_, { id }, { nodes }) => nodes.get(id),
    countries: (_, { first }, { nodes }) => nodes.countries(first),
  },
  Location: {
    parent: (node, _, { nodes }) => nodes.parent(node),
    children: (node, { first }, { nodes }) => nodes.children(node, first),
    ancestors: (node, _, { nodes }) => nodes.ancestors(node),
    descendants: (node, { first, level }, { nodes }) => nodes.descendants(node, first, level),
  },
}
