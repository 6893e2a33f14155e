"""Secrets in texts: the rules that find them, and their replacement."""
