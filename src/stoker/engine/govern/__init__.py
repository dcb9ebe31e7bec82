"""Which jobs run: the level, the policy's decisions carried out, and what a person asks for."""
