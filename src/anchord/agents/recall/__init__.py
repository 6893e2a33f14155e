"""Recall: a hook gives Claude Code what is indexed about a prompt, within a budget."""
