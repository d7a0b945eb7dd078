"""The test house."""
