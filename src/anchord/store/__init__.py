"""What anchord stores: catalog, table of chunks, vector cache, writer lock, crash journal."""
