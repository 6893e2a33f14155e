"""The strategies beside `anchored`: each returns spans of characters."""
