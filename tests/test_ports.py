"""Ports of test servers: several threads start servers at once."""

from concurrent.futures import ThreadPoolExecutor

from tests.ports import free_port


def test_threads_that_ask_for_ports_at_once_get_different_ones():
    with ThreadPoolExecutor(8) as threads:
        ports = list(threads.map(lambda _: free_port(), range(400)))
    assert len(set(ports)) == len(ports)
