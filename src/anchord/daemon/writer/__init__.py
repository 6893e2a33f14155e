"""The writer thread: its loop, work queue, maintenance and sync barrier."""
