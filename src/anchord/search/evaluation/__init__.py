"""Measure how well ways of chunking and searching find a folder's sections, and what edits cost."""
