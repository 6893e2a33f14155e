"""Sessions of assistants -> exchanges."""
