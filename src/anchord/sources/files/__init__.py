"""The roots as trees: stat, read, walk, ignore rules."""
