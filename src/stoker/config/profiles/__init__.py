"""Profiles: how a project is built, as YAML that people write. Unaware of builds and of screens."""
