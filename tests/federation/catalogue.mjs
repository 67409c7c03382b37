// A graph that has a Product and a Store of its own. `data` is a list of stores, each in a city that it keeps by path.
export function make(data) {
  const product = ({ sku }) => ({ sku, title: `Product ${sku}` });
  const stores = data.map(({ number, city }) => ({ number, place: { path: city } }));
  return {
    query: { product, stores },
    entities: { Product: product, Store: ({ number }) => stores.find((store) => store.number === number) },
  };
}
