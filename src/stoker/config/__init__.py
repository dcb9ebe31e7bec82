"""Settings, themes, profiles and where files live. Knows no build and no screen."""
