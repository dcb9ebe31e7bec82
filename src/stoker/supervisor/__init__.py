"""The parent process of a build, too small to fail, and what replaces it when it is killed. Stdlib only."""
