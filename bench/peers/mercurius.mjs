// Fastify and Mercurius with graphql-jit.
import Fastify from 'fastify'
import mercurius from 'mercurius'
import { context, resolvers, typeDefs } from './resolvers.mjs'

const app = Fastify({ logger: false })
app.register(mercurius, { schema: typeDefs, context, resolvers, jit: 1 })
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
