"""The `tfm` command: one module per command; each parses, calls one function, and prints what comes back.

They share app (the group of commands), main (errors to exit codes), startup, options, lines (streams of lines),
translations (what is printed of them), results (what is printed of a test set) and attention.
"""
