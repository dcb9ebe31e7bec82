"""Which jobs run: the level, carrying out the policy's decisions, and user commands."""
