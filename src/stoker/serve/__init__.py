"""The engine's Unix socket: frames, messages, server and client. Knows no screen and no decision."""
