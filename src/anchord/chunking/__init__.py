"""Documents -> chunks with anchored ids."""
