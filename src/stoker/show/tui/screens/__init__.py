"""The screens: each draws the app's current moment and answers its own keys."""
