"""What a user can request for builds: start one, resume one with a remedy, govern and stop one, repair one.

Knows neither screens nor the command line: the code that parses and prints calls these functions.
"""
