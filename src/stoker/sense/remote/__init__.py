"""Engines that compile on other machines: which hosts they have, and which jobs wait for one of these."""
