// Each scalar has the type that the guide names, and no other.
import type { ResultOf } from "gql.tada";
import { initGraphQLTada } from "gql.tada";
import type { introspection } from "./graphql-env.js";
import type { GoodsQuery } from "./types.js";

const graphql = initGraphQLTada<{
  introspection: introspection;
  scalars: { Path: string; Url: string; Date: string; DateTime: string; Decimal: string; Long: number };
}>();
const Goods = graphql(`
  query Goods($path: Path!) { item(path: $path) { path weight since counted price site updatedAt } }
`);

type Item = {
  path: string;
  weight: number | null;
  since: string | null;
  counted: string | null;
  price: string | null;
  site: string | null;
  updatedAt: string;
};
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Flat<T> = { [key in keyof T]: T[key] };
type Of<T extends { item: unknown }> = Flat<Pick<NonNullable<T["item"]>, keyof Item & keyof NonNullable<T["item"]>>>;

export const same: [Equal<Of<ResultOf<typeof Goods>>, Item>, Equal<Of<GoodsQuery>, Item>] = [true, true];
