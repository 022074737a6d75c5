"""`tfm presets`: the settings that come with tfm."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from . import options


def presets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print the settings of this preset.")] = None,
    json_: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List the presets: what each is for, what it takes on two CPU cores, what came of it.

    With a name: its settings, each with a comment. Saved to a file they are a beginning for your own:

    tfm presets multi30k > mine.yaml

    tfm train --config mine.yaml --src train.en --tgt train.de
    """
    del debug
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
    titles = {"name": "preset", "made_for": "for", "cost": "on two cores", "result": "result"}
    widths = {key: max(len(row[key]) for row in [titles, *rows]) for key in titles}
    for row in [titles, *rows]:
        print("  ".join(f"{row[key]:<{widths[key]}}" for key in titles).rstrip())
