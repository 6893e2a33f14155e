"""Backups: snapshots of a home in another folder, their check, and copying one back."""
