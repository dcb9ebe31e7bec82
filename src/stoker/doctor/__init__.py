"""Whether a build can succeed here, before anybody waits for it. Facts, judgements on them, and remedies.

Unaware of running builds, of what was recorded of earlier ones, and of screens.
"""
