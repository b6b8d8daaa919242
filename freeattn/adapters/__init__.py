"""Layers from what other programs write: configuration files."""
