"""The jobs of the build: who they are, where they stand, how they end."""
