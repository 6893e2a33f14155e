"""Value types and pure decisions. Nothing in this package uses disk, clock, threads or logs."""
