"""The writing side: from a changed file to its rows in the store."""
