"""The jobs of the build: their identity, state and end."""
