"""What a program needs of the machine. Nothing here knows text or models.

errors       what can go wrong, and the exit code of each
files        durable writing: staged, synced, renamed, read back; compression
untrusted    reading what may come from anybody
processes    children on pipes; cores that may be used
interrupts   Ctrl-C and other signals
reporter     messages and progress
"""
