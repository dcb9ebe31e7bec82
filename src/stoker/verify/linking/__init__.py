"""Finds out which libraries, versions and symbols the dynamic linker would find."""
