"""Bytes of a file -> Document."""
