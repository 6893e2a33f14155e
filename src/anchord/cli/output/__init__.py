"""How answers are shown on a terminal."""
