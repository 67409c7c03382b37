// Creates the table of dynamodb.mjs and fills it with the lines of a file: load.mjs FILE
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { BatchWriteItemCommand, CreateTableCommand } from '@aws-sdk/client-dynamodb'
import { TableName, client } from './dynamodb.mjs'

await client.send(new CreateTableCommand({
  TableName,
  BillingMode: 'PAY_PER_REQUEST',
  AttributeDefinitions: ['pk', 'sk', 'parent'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
  KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }, { AttributeName: 'sk', KeyType: 'RANGE' }],
  GlobalSecondaryIndexes: [{
    IndexName: 'by_parent',
    KeySchema: [{ AttributeName: 'parent', KeyType: 'HASH' }, { AttributeName: 'sk', KeyType: 'RANGE' }],
    Projection: { ProjectionType: 'ALL' },
  }],
}))

const item = ({ path, level, name, population, code, lat, lon }) => ({
  pk: { S: path[0] },
  sk: { S: path.join('#') },
  parent: { S: path.length > 1 ? path.slice(0, -1).join('#') : 'ROOT' },
  level: { S: level },
  name: { S: name },
  population: { N: String(population) },
  code: { S: code },
  lat: { N: String(lat) },
  lon: { N: String(lon) },
})

async function write(batch) {
  let RequestItems = { [TableName]: batch.map((Item) => ({ PutRequest: { Item } })) }
  while (RequestItems && Object.keys(RequestItems).length) {
    RequestItems = (await client.send(new BatchWriteItemCommand({ RequestItems }))).UnprocessedItems
  }
}

const running = new Set()
let batch = []
async function flush() {
  const task = write(batch).finally(() => running.delete(task))
  running.add(task)
  batch = []
  if (running.size >= 8) await Promise.race(running)
}
for await (const line of createInterface({ input: createReadStream(process.argv[2]) })) {
  batch.push(item(JSON.parse(line)))
  if (batch.length === 25) await flush()
}
if (batch.length) await flush()
await Promise.all(running)
