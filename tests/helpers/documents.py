"""Commands as documents show them."""

import re


def blocks(text: str, language: str = "") -> list[str]:
    """The fenced blocks of one language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


def commands(text: str, *programs: str) -> list[str]:
    """The lines of all plain blocks that begin with one of these, continuation lines joined."""
    lines = "\n".join(blocks(text)).replace("\\\n", " ").splitlines()
    lines = [line.removeprefix("$ ") for line in lines]
    return [line for line in lines if line.startswith(tuple(f"{program} " for program in programs))]
