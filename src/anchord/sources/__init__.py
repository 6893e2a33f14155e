"""Text in: project files, conversations, and hints that either may have changed."""
