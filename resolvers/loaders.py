"""The dataloaders of one request: what resolvers ask one by one, the batch functions answer a level at a time."""

from functools import partial

from aiodataloader import DataLoader

from resolvers.job import Job
from resolvers.lists import Page, lists
from resolvers.nodes import Lookup, above, nodes
from resolvers.request import Request
from resolvers.selection import Relation, Selection
from store.records import Record


class Loaders:
    """`node` loads by lookup and selection, `list` by job, `above` by record and relation."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.node: DataLoader[tuple[Lookup, Selection], Record | Exception | None] = DataLoader(
            partial(nodes, request), get_cache_key=_node_key
        )
        self.list: DataLoader[Job, Page | Exception] = DataLoader(partial(lists, request), get_cache_key=_job_key)
        self.above: DataLoader[tuple[Record, Relation], list[Record] | Exception] = DataLoader(
            partial(above, request), get_cache_key=_above_key
        )


# Records and relations are compared as what they are about: a node by its key, a relation by itself.


def _node_key(key: tuple[Lookup, Selection]) -> object:
    return key[0], id(key[1])


def _job_key(job: Job) -> object:
    return job.owner.key, id(job.relation)


def _above_key(key: tuple[Record, Relation]) -> object:
    return key[0].key, id(key[1])
