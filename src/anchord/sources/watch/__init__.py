"""Hints that a path may have changed."""
