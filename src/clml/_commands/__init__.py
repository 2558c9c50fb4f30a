"""The commands of the command line, one group of them in each module."""
