"""One module for each format: transcript file -> events."""
