"""YAML to `RunConfig`, strictly: an unknown key, a wrong type or an impossible value is an error with its line."""

import difflib
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache, reduce
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from ..data.config import DataConfig, TokenizerConfig
from ..seq2seq.decoding.config import DecodingConfig
from ..seq2seq.model.config import ModelConfig
from ..seq2seq.training.config import TrainingConfig
from ..system.errors import ModelError, UsageError
from ..system.untrusted import read_plain

_MAX_CONFIG_BYTES = 64_000
_MOST_PROBLEMS = 10
"""The largest number of lines about one configuration."""
_LONGEST_VALUE = 60
"""The largest number of characters of a wrong value that are shown."""
_DEEPEST = 20
"""The largest depth of brackets in brackets; a configuration needs one."""
_RETIRED = {("training", "variation"): 0.0}
"""Settings that were taken out, with the value at which they did nothing: files of earlier versions may have them."""
_EXTENDS = "extends"
Tree = dict[str, Any]
"""A configuration as it stands in YAML, or a part of it: sections of keys and values."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that `tfm train` needs to know but a vocabulary or weights to begin with: a run's `config.yaml`."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)


def preset_names() -> list[str]:
    """Names of the presets that come with tfm."""
    folder = resources.files(__package__ or "tfm.configs")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def preset_text(name: str) -> str:
    """A preset as it is written, with its comments."""
    if name not in preset_names():
        raise _no_preset(name)
    return (resources.files(__package__ or "tfm.configs") / f"{name}.yaml").read_text("utf-8")


def _no_preset(name: str, more: str = "") -> UsageError:
    near = difflib.get_close_matches(name, preset_names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return UsageError(f"there is no preset {_shown(name)}{hint} Presets: {', '.join(preset_names())}{more}")


def load_config(name_or_path: str, *, presets: bool = True, alone: bool = False) -> Tree:
    """The settings of a preset or a YAML file: checked, defaults not filled in.

    `extends: NAME` in a file names the preset or the file that its settings go on top of.

    Args:
        presets: False leaves out what is said by presets.
        alone: Refuses `extends`: the file of a run has everything, and may be anybody's.

    Raises:
        UsageError: There is no such preset or file, or something in it is wrong.
    """
    layers = list(_layers(name_or_path, alone=alone))
    return reduce(merge, (tree for source, tree in reversed(layers) if presets or isinstance(source, Path)), {})


def config_files(name_or_path: str) -> list[Path]:
    """The files that a configuration is read from, besides presets, as far as they can be read."""
    found: list[Path] = []
    with suppress(UsageError):
        found.extend(source for source, _ in _layers(name_or_path) if isinstance(source, Path))
    return found


def _layers(name_or_path: str, *, alone: bool = False) -> Iterator[tuple[Path | str, Tree]]:
    """A preset or a file, and what it extends; each with its own settings. One that cannot be read comes before why."""
    source: Path | str | None = None
    base: str | None = name_or_path
    seen: list[Path] = []
    while base is not None:
        extending = source
        try:
            source, text = _read(base)
        except UsageError as error:
            raise UsageError(f"{extending}: extends: {error}" if extending else str(error)) from error
        if Path(source).resolve() in seen:
            raise UsageError(f"{extending}: extends {source}, which extends it in turn")
        seen.append(Path(source).resolve())
        tree: Tree = {}
        yield source, tree
        if not text.strip():
            raise UsageError(f"{source} is empty: it has no settings")
        tree |= _parse_yaml(text, str(source))
        base = None if alone else tree.pop(_EXTENDS, None)
        if base is not None and not isinstance(base, str):
            raise UsageError(f"{source}: extends names one preset or one YAML file, but is {_shown(base)}")
        _validate(tree, str(source), _line_numbers(text))
        if base is not None and base not in preset_names() and isinstance(source, Path):
            base = str(source.parent / base)


def _read(name_or_path: str) -> tuple[Path | str, str]:
    """Where a configuration stands, and its text; of a preset its name with `.yaml`."""
    if name_or_path in preset_names():
        return f"{name_or_path}.yaml", preset_text(name_or_path)
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        raise _no_preset(name_or_path, "; or name a .yaml file")
    try:
        return path, read_plain(path, _MAX_CONFIG_BYTES, follow=True).decode("utf-8")
    except ModelError as error:
        raise UsageError(str(error)) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8") from error


def parse_config(tree: Tree) -> RunConfig:
    """Fills in defaults and checks the whole; UsageError names all problems at once, each with its key."""
    return _validate(tree, "", {})


def merge(base: Tree, over: Tree) -> Tree:
    """Settings of `over` on top of those of `base`."""
    merged = dict(base)
    for key, value in over.items():
        deeper = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if deeper else value
    return merged


def parse_assignment(assignment: str) -> Tree:
    """The settings of `--set section.key=value`; the value is read as YAML."""
    from pydantic import ValidationError

    key, equals, value = assignment.partition("=")
    section, dot, name = key.strip().partition(".")
    if not equals or not dot:
        raise UsageError(
            f"--set takes section.key=value, such as training.learning_rate=0.001, not {_shown(assignment)}"
        )
    tree = {section: {name: _parse_yaml(f"value: {value}", f"--set {assignment}")["value"]}}
    try:
        _strictly(tree)
    except ValidationError as error:
        # Whether a value suits the other values can only be told of the whole configuration.
        details = [detail for detail in error.errors() if detail["type"] != "value_error"]
        if details:
            raise _usage_error(details, f"--set {assignment}", {}) from error
    return tree


def render_config(config: RunConfig) -> str:
    """The whole configuration as YAML."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(_plain(asdict(config)), stream)
    return stream.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _parse_yaml(text: str, name: str) -> Tree:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import AliasEvent

    if _looks_deep(text):
        raise UsageError(f"{name}: nested too deeply for a configuration")
    yaml = YAML(typ="safe", pure=True)
    try:
        if any(isinstance(event, AliasEvent) for event in yaml.parse(text)):
            raise UsageError(f"{name}: YAML aliases are not allowed in a configuration")
        tree = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(f"{name}{place}: {(error.problem or 'not valid YAML').strip().splitlines()[0]}") from error
    except RecursionError as error:
        raise UsageError(f"{name}: nested too deeply for a configuration") from error
    except (YAMLError, ValueError) as error:
        raise UsageError(f"{name}: not valid YAML: {str(error).splitlines()[0]}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise UsageError(f"{name}: a configuration is a mapping of sections to settings")
    for key in [key for section in [tree, *tree.values()] if isinstance(section, dict) for key in section]:
        if not isinstance(key, str | int | float | None):  # what JSON can have
            raise UsageError(f"{name}: {_shown(key)} is no name of a section or a setting")
    return tree


def _looks_deep(text: str) -> bool:
    """Whether brackets or dashes stand in each other so deeply that reading them would take minutes."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest > _DEEPEST or bool(re.search(rf"(?:[-?:]\s+){{{_DEEPEST}}}", text))


def _line_numbers(text: str) -> dict[tuple[str, ...], int]:
    """Line of each key, by its path; two levels are all a configuration has."""
    from ruamel.yaml import YAML

    lines: dict[tuple[str, ...], int] = {}
    root = YAML(pure=True).compose(text)
    for key, value in root.value if root is not None and isinstance(root.value, list) else []:
        lines[(str(key.value),)] = key.start_mark.line + 1
        for inner in value.value if isinstance(value.value, list) else []:
            if isinstance(inner, tuple):
                lines[str(key.value), str(inner[0].value)] = inner[0].start_mark.line + 1
    return lines


def _validate(tree: Tree, name: str, lines: dict[tuple[str, ...], int]) -> RunConfig:
    from pydantic import ValidationError

    for (section, key), value in _RETIRED.items():
        if isinstance(tree.get(section), dict) and tree[section].get(key) == value:
            tree = tree | {section: {one: kept for one, kept in tree[section].items() if one != key}}
    try:
        return _strictly(tree)
    except ValidationError as error:
        raise _usage_error(error.errors(), name, lines) from error


def _strictly(tree: Tree) -> RunConfig:
    """The configuration of some settings, none of them converted: '10' and true are no numbers.

    pydantic takes a dictionary for a dataclass in strict mode where it reads JSON, so that is what it gets.

    Raises:
        UsageError: A name in them is not UTF-8, which config.yaml could not hold.
    """
    text = json.dumps(tree, default=str, ensure_ascii=False)
    try:
        document = text.encode()
    except UnicodeEncodeError as error:
        name = text[: error.start].rpartition('"')[2] + text[error.start :].partition('"')[0]
        raise UsageError(f"{name} is not UTF-8; a file or folder of this name needs another one") from error
    return _adapter().validate_json(document, strict=True)


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(RunConfig)


def _usage_error(details: Sequence[Any], name: str, lines: dict[tuple[str, ...], int]) -> UsageError:
    problems = [problem for detail in details for problem in _problems(detail, name, lines)]
    said = list(dict.fromkeys(problems))
    more = [f"and {len(said) - _MOST_PROBLEMS:,} more problems"] if len(said) > _MOST_PROBLEMS else []
    return UsageError("\n".join([*said[:_MOST_PROBLEMS], *more]))


def _problems(detail: Any, name: str, lines: dict[tuple[str, ...], int]) -> list[str]:
    """One pydantic error as our sentences, each with file, line and, for an unknown key, the nearest known one."""
    path = tuple(str(part) for part in detail["loc"])
    if detail["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return [_place(name, lines, path) + f"unknown key {_shown('.'.join(path))}{_nearest_key(path)}"]
    if "ctx" in detail and isinstance(detail["ctx"].get("error"), ValueError):
        messages = str(detail["ctx"]["error"]).splitlines()
        return [_place(name, lines, (*path, message.split()[0].rstrip(":"))) + message for message in messages]
    if detail["type"] == "dataclass_type":
        return [
            _place(name, lines, path)
            + f"{'.'.join(path)} must be a section of settings, but is {_shown(detail['input'])}"
        ]
    message = detail["msg"].removeprefix("Input ").replace("should be", "must be").replace("array", "list")
    value = detail["input"]
    is_name = path[0] == "data" and message.endswith("list") and isinstance(value, str) and len(value) <= _LONGEST_VALUE
    fix = f"; write [{value}]" if is_name else ""
    return [_place(name, lines, path) + f"{'.'.join(path)} {message}, but is {_shown(value)}{fix}"]


def _shown(value: Any) -> str:
    """A value as a person reads it, its beginning if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + ".."


def _place(name: str, lines: dict[tuple[str, ...], int], path: tuple[str, ...]) -> str:
    while path and path not in lines:
        path = path[:-1]
    place = f"{name}:{lines[path]}" if path else name
    return f"{place}: " if place else ""


def _settings() -> Iterator[tuple[str, str]]:
    """Every setting: its section and its name."""
    for section in fields(RunConfig):
        for key in fields(section.default_factory):  # pyright: ignore[reportArgumentType]
            yield section.name, key.name


def setting_names() -> list[str]:
    """All settings, such as `model.d_model`."""
    return [f"{section}.{key}" for section, key in _settings()]


def nearest_setting(name: str) -> str | None:
    """The setting, with its section, that a name without one is most like; None if it is like none."""
    known = {key: f"{section}.{key}" for section, key in _settings()}
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return known[near[0]] if near else None


def _nearest_key(path: tuple[str, ...]) -> str:
    known: Any = RunConfig
    for part in path[:-1]:
        types = {field.name: field.default_factory for field in fields(known)}
        known = types.get(part)
        if not (isinstance(known, type) and is_dataclass(known)):
            return ""
    names = [field.name for field in fields(known)]
    elsewhere = [f"{section}.{key}" for section, key in _settings() if key == path[-1]]
    near = elsewhere or difflib.get_close_matches(path[-1], names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"
