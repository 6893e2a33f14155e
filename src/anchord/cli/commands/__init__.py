"""A module a group of commands."""
