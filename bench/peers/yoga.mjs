// GraphQL Yoga with graphql-jit, on Bun.
import { useGraphQlJit } from '@envelop/graphql-jit'
import { createSchema, createYoga } from 'graphql-yoga'
import { context, resolvers, typeDefs } from './resolvers.mjs'

const schema = createSchema({ typeDefs, resolvers })
const yoga = createYoga({ schema, context, plugins: [useGraphQlJit()], logging: 'error', graphiql: false })
Bun.serve({ fetch: yoga.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })
