"""What the programs of agents are given: entries in their settings, a plugin, a skill, recall."""
