"""`tfm presets`: the settings that come with tfm."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from . import options
from .table import print_table


def presets(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Print the settings of this preset.", autocompletion=options.offered("presets")
        ),
    ] = None,
    json_: options.Json = False,
) -> None:
    """List the presets, or print the settings of one.

    The list says what each is for, what it takes on two CPU cores, and what came of it. With a name its settings are
    printed, each with a comment. Your own file can begin with the line extends: multi30k, and say only what is to be
    otherwise:

    tfm train --config mine.yaml --src train.en --tgt train.de
    """
    from ..configs import load_config, preset_text
    from ..configs.presets import PRESETS

    if name is not None:
        text = preset_text(name)
        print(json.dumps(load_config(name), ensure_ascii=False) + "\n" if json_ else text, end="")
        return
    rows = [asdict(preset) for preset in PRESETS]
    if json_:
        print(json.dumps(rows, ensure_ascii=False))
        return
    print_table([list(row.values()) for row in rows], ["preset", "for", "on two cores", "result"])
