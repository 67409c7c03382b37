"""The dataloaders of one request: what resolvers ask one by one, the batch functions answer a level at a time."""

from functools import partial

from aiodataloader import DataLoader

from resolvers.granted import lists
from resolvers.job import Job
from resolvers.lists import Page
from resolvers.nodes import Lookup, above, nodes
from resolvers.request import Request
from resolvers.selection import Relation, Selection
from store.records import Record


class Loaders:
    """`node` loads by lookup and selection, `list` by job, `above` by record and relation.

    They keep nothing: the request knows what was read, and what is returned twice is taken from its budget twice.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.node: DataLoader[tuple[Lookup, Selection], Record | Exception | None] = DataLoader(
            partial(nodes, request), cache=False
        )
        self.list: DataLoader[Job, Page | Exception] = DataLoader(partial(lists, request), cache=False)
        self.above: DataLoader[tuple[Record, Relation], list[Record] | Exception] = DataLoader(
            partial(above, request), cache=False
        )
