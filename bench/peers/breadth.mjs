// graphql-breadth behind Bun's own HTTP server: each field is resolved once for all objects of its level.
import { buildSchema, parse, validate } from 'graphql'
// its package names a build that it does not contain; Bun runs the source
import { Executor, FieldResolver, LazyLoader, ObjectKeyResolver } from 'graphql-breadth/src/index.ts'
import { context, resolvers, typeDefs } from './resolvers.mjs'

// The resolvers of one object, called for all objects of a level
class Level extends FieldResolver {
  constructor(resolve) {
    super()
    this.one = resolve
    this.Loader = class extends LazyLoader {
      async = true
      map = true
      constructor(args) {
        super()
        this.args = args ?? {}
      }
      performAsync(objects, shared) {
        return Promise.all(objects.map((object) => resolve(object, this.args, shared)))
      }
    }
  }

  resolve(field) {
    const { arguments: args, context: shared } = field
    if (process.env.DATA) return field.mapObjects((object) => this.one(object, args, shared))
    return field.lazy({ loaderClass: this.Loader, args, keys: field.objects, loadNilKeys: true })
  }
}

const schema = buildSchema(typeDefs)
const levels = {}
for (const [type, fields] of Object.entries(resolvers)) {
  levels[type] = Object.fromEntries(Object.keys(schema.getType(type).getFields()).map((name) => [
    name, fields[name] ? new Level(fields[name]) : new ObjectKeyResolver(name),
  ]))
}

const documents = new Map() // of a benchmark: a real server would bound it
function documentOf(text) {
  let document = documents.get(text)
  if (!document) {
    document = parse(text)
    const errors = validate(schema, document)
    if (errors.length) throw errors[0]
    documents.set(text, document)
  }
  return document
}

async function fetch(request) {
  const { query, variables } = await request.json()
  const options = { schema, document: documentOf(query), resolvers: levels, variables, context: context(), rootObject: {} }
  return Response.json(await Executor.build({ ...options, validateDocument: false }).result)
}
const error = (error) => Response.json({ errors: [{ message: error.message }] }, { status: 400 })
Bun.serve({ fetch, error, port: Number(process.env.PORT), hostname: '127.0.0.1' })
