"""Known faults: what the suite finds, counts and steps over until it is repaired, by a name that says what is wrong.

Each has a strict expected failure in `tests/outside/test_known.py`: once that passes, its line here goes.
"""

KNOWN: dict[str, str] = {
    "letters with a stroke sort after z, but are found without it": (
        "`lodz` finds Łódź, but lists sort it after Z and conditions do not find it by `l`."
    ),
    "lists of more than 10,000 nodes cannot be sorted": (
        "`orderBy` and `where` reject lists of more than CLADE_MAX_NODES nodes."
    ),
}
