"""What agents' programs are given: entries in their settings, a plugin, a skill, recall by hooks."""
