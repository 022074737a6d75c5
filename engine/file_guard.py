"""No command writes a file that it reads, nor one file twice. Every option that names a file says here what it names.

What is marked is checked for every command before it begins (`guarded`); the settings of a training, which may come
from a file, once they are known (`guard_training`). Links, hard links and `..` are followed.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..system.errors import TfmError, UsageError
from ..system.files import PARTIAL, is_stream, unfinished

if TYPE_CHECKING:
    from ..data.config import DataConfig
    from .runs.directory import RunDirectory

EVERYTHING = "**"


@dataclass(frozen=True)
class Place:
    """A file, or a folder with files in it; it need not be there."""

    path: Path
    inside: str = ""
    """Which files of a folder are meant: those right in it whose name fits a pattern, `EVERYTHING` at any depth and the
    folder itself, or none."""


Given = Mapping[str, Any]
"""The values of a command's options, by the names of its parameters."""


@dataclass(frozen=True)
class Reads:
    """Marks an option whose value names something that the command reads."""

    places: Callable[[Any], Iterable[Place]]
    """From one value to the files meant."""
    default: Callable[[], Any] = lambda: None
    """What stands for a value that is not given."""


@dataclass(frozen=True)
class Writes:
    """Marks an option whose value names something that the command writes."""

    places: Callable[[Path, Given], Iterable[Place]]
    """From the value and all other options to the files that are written or replaced."""


@dataclass(frozen=True)
class _Option:
    """A mark of an option: the name of its parameter, what it is called, and what its value means."""

    name: str
    flag: str
    mark: Reads | Writes


def _run(path: Path | str) -> "RunDirectory":
    from .runs.directory import RunDirectory

    return RunDirectory(path)


def _of_file(path: Path | str) -> Iterator[Place]:
    if _is_there(Path(path)):
        yield Place(Path(path))


def _of_file_or_folder(path: Path | str) -> Iterator[Place]:
    return (Place(place.path, EVERYTHING) for place in _of_file(path))


def _of_spec(spec: str) -> Iterator[Place]:
    from ..data.corpus import spec_path

    if (path := spec_path(spec)) is not None and _is_there(path):
        yield Place(path, EVERYTHING)


def _of_config(name: str) -> Iterator[Place]:
    from ..configs.loader import config_files

    yield from (place for path in (name, *config_files(name)) for place in _of_file(path))


def _of_run(path: Path | str) -> Iterator[Place]:
    run = _run(path)
    if run.is_export:
        yield Place(run.path, EVERYTHING)
        return
    yield from (Place(file) for file in (run.path, *run.files))
    yield from (Place(folder, EVERYTHING) for folder in run.folders)


def _of_data_of_run(path: Path) -> Iterator[Place]:
    with suppress(TfmError):  # no run, which the command says in its own words
        for key, names in _run(path).data_files().items():
            yield from (place for name in names for place in DATA[key].places(name))


def _only_run() -> Path | None:
    from .runs.find import only_run

    return only_run()


def file_places(path: Path) -> list[Place]:
    """A file that is written, and the names that it has until it is complete."""
    return [Place(one) for one in (path, *unfinished(path))]


def _folder_places(path: Path) -> list[Place]:
    return [Place(one, EVERYTHING) for one in (path, *unfinished(Path(os.path.realpath(path))))]


def _written_as_read(path: Path, given: Given) -> Iterable[Place]:
    """A folder where the input is one, else a file."""
    return _folder_places(path) if given["input_"] and Path(given["input_"]).is_dir() else file_places(path)


def _written_run(path: Path, given: Given) -> Iterator[Place]:
    """A vocabulary that the run has already is read, and stays; so does the configuration of one that goes on."""
    run, kept, config = _run(path), given.get("tokenizer"), given.get("config")
    own_config = _key(Path(config)) if config is not None and run.checkpoints() else None
    for file in run.files:
        if own_config is None or _key(file) != own_config:
            yield Place(file)
    for folder in run.folders:
        if folder != run.tokenizer or kept is None or _key(kept) != _key(folder):
            yield Place(folder, EVERYTHING)
    yield Place(run.path, f"*{PARTIAL}")  # removed as debris


READS_FILE = Reads(_of_file)
READS_FILE_OR_FOLDER = Reads(_of_file_or_folder)
READS_CONFIG = Reads(_of_config)
READS_SPEC = Reads(_of_spec)
READS_TOKENIZER = Reads(lambda directory: map(Place, directory.glob("*")))
READS_RUN = Reads(_of_run)
READS_RUN_OR_ONLY_ONE = Reads(_of_run, default=_only_run)
READS_RUNS = Reads(lambda folder: (place for run in folder.glob("*") if run.is_dir() for place in _of_run(run)))
READS_NAMED_RUN = Reads(
    lambda spec: _of_run(spec if Path(spec).exists() else spec.partition("=")[2] or spec), default=_only_run
)
READS_DATA_OF_RUN = Reads(_of_data_of_run, default=_only_run)
READS_SPEC_OR_RUN = Reads(lambda spec: _of_run(spec) if _run(spec).has_begun else _of_spec(spec))
WRITES_FILE = Writes(lambda path, given: file_places(path))
WRITES_FOLDER = Writes(lambda path, given: _folder_places(path))
WRITES_AS_READ = Writes(_written_as_read)
WRITES_RUN = Writes(_written_run)

DATA: Mapping[str, Reads] = {
    **dict.fromkeys(("src", "tgt", "dev_src", "dev_tgt", "text", "dev_text", "replay_src", "replay_tgt"), READS_FILE),
    **dict.fromkeys(("data", "dev", "replay"), READS_SPEC),
}
"""What the settings of `data` name."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command that begins only if no file that it writes is one that it reads.

    Raises:
        TypeError: One of its options is a path, and is not marked with what it means.
    """
    options: list[_Option] = []
    for name, annotation in command.__annotations__.items():
        marks = getattr(annotation, "__metadata__", ())
        flag = next(filter(None, map(_flag_of, marks)), f"--{name.replace('_', '-')}")
        marked = [_Option(name, flag, mark) for mark in marks if isinstance(mark, Reads | Writes)]
        if not marked and "Path" in str(get_args(annotation)[:1]):
            raise TypeError(f"{command.__name__}: {flag} is a path; mark it as one that is read or written")
        options += marked

    @wraps(command)
    def begin(**given: Any) -> None:
        _refuse_overwriting(options, given)
        command(**given)

    return begin


def _flag_of(option: Any) -> str:
    """What an option is called, if that does not follow from its parameter. Typer has the first name as the default.

    An argument is called as it is in the help.
    """
    if type(option).__name__ == "ArgumentInfo":
        return option.metavar or ""
    names = (getattr(option, "default", None), *(getattr(option, "param_decls", None) or ()))
    return next((name for name in names if isinstance(name, str) and name.startswith("--")), "")


def guard_training(
    run: Path, data: "DataConfig", *, config: str | None, tokenizer: Path | None, init_from: Path | None
) -> None:
    """Refuses a training whose run would overwrite what it reads. Its files may be named by settings."""
    marks = {"config": READS_CONFIG, "tokenizer": READS_TOKENIZER, "init_from": READS_RUN, "run": WRITES_RUN}
    options = [_Option(name, f"data.{name}", mark) for name, mark in DATA.items()]
    options += [_Option(name, f"--{name.replace('_', '-')}", mark) for name, mark in marks.items()]
    given = {name: getattr(data, name) for name in DATA}
    _refuse_overwriting(options, given | {"run": run, "config": config, "tokenizer": tokenizer, "init_from": init_from})


@dataclass(frozen=True)
class _Use:
    """One value that was given, and a place that it stands for."""

    flag: str
    value: str
    place: Place

    @property
    def named(self) -> str:
        return f"{self.flag} {self.value}".rstrip()

    @property
    def fix(self) -> str:
        return f"name another {self.flag}" if self.value else "send it elsewhere"


def _refuse_overwriting(options: Sequence[_Option], given: Given) -> None:
    """Refuses to write what is read, and to write one file twice."""
    written = [*_uses(Writes, options, given), *_standard_streams("standard output", "standard error")]
    if not written:
        return
    read = [*_uses(Reads, options, given), *_standard_streams("standard input")]
    held = [(use, _keys_in(use.place)) for use in read]
    for number, write in enumerate(written):
        for use, keys in held:
            if _meet(use.place, keys, write.place):
                raise UsageError(f"{write.named} would overwrite {use.place.path}, which {use.flag} reads; {write.fix}")
        for other in written[:number]:
            if (
                other.flag != write.flag
                and not _are_one_stream(other, write)
                and _meet(other.place, _keys_of(other.place), write.place)
            ):
                raise UsageError(f"{other.named} and {write.named} would overwrite each other; {other.fix}")


def _uses(kind: type[Reads] | type[Writes], options: Sequence[_Option], given: Given) -> Iterator[_Use]:
    for option in options:
        mark, value = option.mark, given[option.name]
        if not isinstance(mark, kind):
            continue
        if value is None and isinstance(mark, Reads):
            value = mark.default()
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            places = mark.places(one) if isinstance(mark, Reads) else mark.places(one, given)
            yield from (_Use(option.flag, str(one), place) for place in places)


def _standard_streams(*names: str) -> Iterator[_Use]:
    """Those that are files: `tfm translate -i FILE >> FILE`."""
    numbers = {"standard input": 0, "standard output": 1, "standard error": 2}
    for name in names:
        with suppress(OSError):
            if stat.S_ISREG(os.fstat(numbers[name]).st_mode):
                yield _Use(name, "", Place(Path(os.path.realpath(f"/dev/fd/{numbers[name]}"))))


def _are_one_stream(one: _Use, other: _Use) -> bool:
    """Whether both are standard streams, one of them perhaps called `/dev/stdout`: that is what the user asked for."""
    unnamed = [not use.value for use in (one, other)]
    return all(unnamed) or (any(unnamed) and is_stream(Path(one.value or other.value)))


Key = tuple[object, ...]


def _key(path: Path) -> Key | None:
    """The same for all names of a file; None for a device, which nothing overwrites.

    What is not there is known by the nearest folder that is, and its names from there on.
    """
    place, missing = path, list[str]()
    while True:
        try:
            found = place.stat()
        except ValueError:  # no name of a file
            return None
        except OSError:
            if not missing:
                place = Path(os.path.realpath(place))
            if not place.name:
                return None
            missing.insert(0, place.name.casefold() if sys.platform in ("darwin", "win32") else place.name)
            place = place.parent
            continue
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or stat.S_ISFIFO(found.st_mode)):
            return None
        return found.st_dev, found.st_ino, *missing


def _is_there(path: Path) -> bool:
    return len(_key(path) or ()) == 2


def _keys_of(place: Place) -> set[Key]:
    """The key of a place itself; none for some of the files in a folder."""
    key = _key(place.path) if place.inside in ("", EVERYTHING) else None
    return set() if key is None else {key}


def _keys_in(place: Place) -> set[Key]:
    """The keys of a place and of all files in it: there may be hard links to them."""
    inside = place.path.rglob("*") if place.inside == EVERYTHING else ()
    return _keys_of(place) | {key for path in inside if (key := _key(path)) is not None}


def _meet(one: Place, keys: set[Key], other: Place) -> bool:
    """Whether two places, the first of which has these keys, have a file in common."""
    return bool(keys & _keys_of(other)) or _is_within(one.path, other) or _is_within(other.path, one)


def _is_within(path: Path, folder: Place) -> bool:
    """Whether a name, or what it leads to, is one of the files meant in a folder."""
    if not folder.inside or (root := _key(folder.path)) is None or _key(path) is None:
        return False
    for name in (Path(os.path.realpath(path)), Path(os.path.realpath(path.parent), path.name)):
        for parent in name.parents:
            if _key(parent) == root:
                rest = name.relative_to(parent)
                if folder.inside == EVERYTHING or (len(rest.parts) == 1 and fnmatchcase(rest.name, folder.inside)):
                    return True
    return False
