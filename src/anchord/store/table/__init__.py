"""The LanceDB table of chunks."""

from anchord.store.table import import_lancedb as import_lancedb  # Before any import of lancedb.
