"""A module a format: text -> a layout of atoms with cut strengths."""
