"""Embedding: texts -> vectors."""
