"""The explorer: a page that shows the hierarchies, with its files in `assets`."""
