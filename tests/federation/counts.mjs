// How many shops a place has, whatever its level. `data` has the numbers by the places' ids.
export function make(data) {
  const place = (id) => ({ __typename: "Location", id, shopCount: data[id] ?? 0 });
  const busiest = Object.keys(data).sort((one, other) => data[other] - data[one]).map(place);
  return {
    query: { busiest },
    entities: { Location: ({ id }) => place(id) },
  };
}
