"""What a run is made of: a strict loader from YAML to dataclasses, and the presets beside it."""

from .loader import RunConfig, load_config, merge, parse_config, preset_names, preset_text, render_config

__all__ = ["RunConfig", "load_config", "merge", "parse_config", "preset_names", "preset_text", "render_config"]
