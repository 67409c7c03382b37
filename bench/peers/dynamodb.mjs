// Nodes in DynamoDB, by the AWS SDK and a DataLoader of each request.
//   table: pk = country, sk = path joined by "#"; index by_parent: parent (sk of the parent, or ROOT), sk
import { Agent } from 'node:http'
import { BatchGetItemCommand, DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import DataLoader from 'dataloader'

export const TableName = 'locations'
export const client = new DynamoDBClient({
  endpoint: process.env.DYNAMO_ENDPOINT,
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  cacheMiddleware: true,
  logger: {}, // the default logger is silent, but copies every answer to filter it
  requestHandler: new NodeHttpHandler({ httpAgent: new Agent({ keepAlive: true, maxSockets: 128 }) }),
})

const toNode = (item) => ({
  id: item.sk.S,
  parentId: item.parent.S,
  level: item.level.S,
  name: item.name.S,
  population: Number(item.population.N),
  code: item.code.S,
  lat: Number(item.lat.N),
  lon: Number(item.lon.N),
})
const prefixes = (id) => {
  const segments = id.split('#')
  return segments.slice(0, -1).map((_, i) => segments.slice(0, i + 1).join('#'))
}

// Query, page by page, until `limit` nodes are there or the key range ends
async function query(input, limit = Infinity) {
  const nodes = []
  let ExclusiveStartKey
  do {
    // with a filter, Limit would count what the filter drops
    const Limit = limit < Infinity && !input.FilterExpression ? limit - nodes.length : undefined
    const page = await client.send(new QueryCommand({ TableName, ...input, Limit, ExclusiveStartKey }))
    for (const item of page.Items) nodes.push(toNode(item))
    ExclusiveStartKey = page.LastEvaluatedKey
  } while (ExclusiveStartKey && nodes.length < limit)
  return nodes.length > limit ? nodes.slice(0, limit) : nodes
}

export async function byIds(ids) {
  const found = new Map()
  const chunks = []
  for (let i = 0; i < ids.length; i += 100) chunks.push(ids.slice(i, i + 100))
  await Promise.all(chunks.map(async (chunk) => {
    let RequestItems = { [TableName]: { Keys: chunk.map((id) => ({ pk: { S: id.split('#', 1)[0] }, sk: { S: id } })) } }
    while (RequestItems && Object.keys(RequestItems).length) {
      const answer = await client.send(new BatchGetItemCommand({ RequestItems }))
      for (const item of answer.Responses?.[TableName] ?? []) found.set(item.sk.S, toNode(item))
      RequestItems = answer.UnprocessedKeys
    }
  }))
  return ids.map((id) => found.get(id) ?? null)
}

export const childrenOf = (parentId, first) => query({
  IndexName: 'by_parent',
  KeyConditionExpression: '#parent = :parent',
  ExpressionAttributeNames: { '#parent': 'parent' },
  ExpressionAttributeValues: { ':parent': { S: parentId } },
}, first ?? undefined)

const descendants = (id, first, level) => query({
  KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
  ExpressionAttributeValues: {
    ':pk': { S: id.split('#', 1)[0] },
    ':prefix': { S: `${id}#` },
    ...(level ? { ':level': { S: level } } : {}),
  },
  ...(level ? { FilterExpression: '#level = :level', ExpressionAttributeNames: { '#level': 'level' } } : {}),
}, first ?? undefined)

// What one request reads
export function dynamodb() {
  const byId = new DataLoader(byIds, { maxBatchSize: 1000 })
  const children = new DataLoader(
    (keys) => Promise.all(keys.map(({ id, first }) => childrenOf(id, first))),
    { cacheKeyFn: ({ id, first }) => `${first}|${id}` },
  )
  return {
    get: (id) => byId.load(id),
    countries: (first) => children.load({ id: 'ROOT', first }),
    parent: (node) => (node.parentId === 'ROOT' ? null : byId.load(node.parentId)),
    children: (node, first) => children.load({ id: node.id, first }),
    ancestors: (node) => byId.loadMany(prefixes(node.id)),
    descendants: (node, first, level) => descendants(node.id, first, level),
  }
}
