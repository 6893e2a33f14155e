"""Random trees with ignore files, and what git says of them: the oracle of the ignore rules."""
