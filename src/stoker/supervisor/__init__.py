"""The process above a build, too small to fail, and what takes its place when it is killed. Stdlib only."""
