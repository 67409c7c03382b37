// Shops, each of which keeps its city by path and its category by id. `data` is a list of such shops.
export function make(data) {
  const shops = data.map(({ id, name, city, category }) => ({
    id,
    name,
    city: city && { path: city },
    category: category && { id: category },
  }));
  const shop = ({ id }) => shops.find((one) => one.id === id);
  return { query: { shops, shop }, entities: { Shop: shop } };
}
