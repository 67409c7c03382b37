"""Golden files: what a release promises, and data that it wrote, in a folder of its version.

`python -m tests.golden` writes the folder of the version in pyproject.toml anew. `tests/test_stability.py` compares the
code with all folders whose promises are in force.
"""
