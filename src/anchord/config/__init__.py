"""What the user configured: the schema, the files, the paths and the roots."""
