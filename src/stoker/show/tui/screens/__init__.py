"""The screens: each draws the app's current moment and handles its own keys. They know no sockets and no journals."""
