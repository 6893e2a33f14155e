"""The daemon: the process that watches, indexes and answers."""
