// What an application with Relay asks of a tree: lists that grow on both relations, and a node fetched again by its id.
import { graphql } from "relay-runtime";

export const children = graphql`
  fragment tree_children on Location
  @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, cursor: { type: "String" })
  @refetchable(queryName: "treeChildrenQuery") {
    children(first: $count, after: $cursor) @connection(key: "tree__children") {
      totalCount
      edges { node { id name level childCount } }
    }
  }
`;

export const descendants = graphql`
  fragment tree_cities on Location
  @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, cursor: { type: "String" })
  @refetchable(queryName: "treeCitiesQuery") {
    descendants(first: $count, after: $cursor, level: CITY) @connection(key: "tree__descendants") {
      totalCount
      edges { node { id path ... on City { timezone } } }
    }
  }
`;

export const product = graphql`
  fragment tree_product on Product @refetchable(queryName: "treeProductQuery") {
    name
    brand
    price
  }
`;

export const breadcrumb = graphql`
  fragment tree_breadcrumb on TreeNode {
    name
    levelName
    ancestors { id name }
  }
`;

export const page = graphql`
  query treePageQuery($path: Path!, $product: ID!) {
    location(path: $path) { id ...tree_children ...tree_cities }
    node(id: $product) { ...tree_product @alias ...tree_breadcrumb @alias }
  }
`;
