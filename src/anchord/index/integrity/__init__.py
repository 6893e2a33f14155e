"""Verify the index against the files, repair it, and purge paths from it."""
