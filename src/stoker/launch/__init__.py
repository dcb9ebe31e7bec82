"""What a person can have done with builds: start one, resume one with a remedy, govern and stop one, repair one.

Knows no screen and no command line: whoever parses and prints calls these functions.
"""
