"""The sub-commands, a module each; `cli.main` imports one when it is called."""
