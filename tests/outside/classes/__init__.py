"""Class files as users write them. They are given to `clade` by name, in CLADE_HIERARCHIES, and never imported here."""
