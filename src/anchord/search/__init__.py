"""The reading side: a query -> hits."""
