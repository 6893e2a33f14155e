"""One engine cuts a layout; one writer emits the chunks."""
