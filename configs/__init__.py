"""What a run is made of: a strict loader from YAML to dataclasses, and the presets beside it."""

from .loader import load_config, merge, parse_config, preset_names, preset_text, render_config
from .run import RunConfig

__all__ = ["RunConfig", "load_config", "merge", "parse_config", "preset_names", "preset_text", "render_config"]
