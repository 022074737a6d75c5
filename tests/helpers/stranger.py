"""Uses what came from a stranger, in a process that is watched: for `ForkServer.call`.

The process works in a folder that holds `run/` and nothing else of its own. It ends as `tfm` would. Its last line on
stdout says what it did besides: seconds, memory, and whatever no reading of a run should do.
"""

import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = "one two three"
_PIECES = 6
"""Longest output."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = {
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.startfile",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.chown",
    "os.utime",
    "os.setxattr",
    "pickle.find_class",
    "code.__new__",
    "ctypes.dlopen",
    "shutil.rmtree",
    "webbrowser.open",
}
"""Events of Python's audit, see its library reference."""


class Watch:
    """Notes what a process does that reading a run does not need.

    Args:
        cache: The directory in which tfm remembers harmless vocabularies; it may write there.
    """

    def __init__(self, cache: str) -> None:
        self.seen: list[str] = []
        self._cache = cache
        self._temporary = tempfile.gettempdir()
        self._ours = tuple({sys.prefix, sys.base_prefix, str(Path(__file__).parent)})

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Hears of an event."""
        if self._is_wrong(event, arguments):
            self.seen.append(f"{event} {arguments!r}"[:200])

    def _is_wrong(self, event: str, arguments: tuple[Any, ...]) -> bool:
        match event:
            case "open":
                path, _, flags = arguments
                return bool(flags & _WRITING) and not self._may_write(path)
            case "subprocess.Popen":
                return "tfm.data.vocabulary_trial_worker" not in arguments[1]
            case "exec":
                return not str(arguments[0].co_filename).startswith((*self._ours, "<frozen ", "<string>", "<attrs"))
            case "compile":
                return str(arguments[1]).startswith(str(Path.cwd()))
            case "os.mkdir":
                return not str(arguments[0]).startswith(self._cache)
            case _:
                return event in _FORBIDDEN or event.startswith(("socket.", "urllib."))

    def _may_write(self, path: object) -> bool:
        """Whether it is the cache, a stream that is open already, or a file without a name, as for a child's stderr."""
        if not isinstance(path, str | bytes):
            return True
        name = os.fsdecode(path)
        return name == self._temporary or name.startswith(self._cache)


def use(door: str) -> None:
    """Uses `run/` in one of the ways that `DOORS` has, and ends."""
    from tfm.cli.main import report

    watch = Watch(os.environ["XDG_CACHE_HOME"])
    sys.addaudithook(watch)
    Path("/proc/self/clear_refs").write_text("5")  # from now on VmHWM is the peak
    watch.seen.clear()
    before, code = _kilobytes("VmRSS"), 0
    try:
        DOORS[door]()
    except BaseException as error:
        code = report(error)
    peak = _kilobytes("VmHWM") - before
    times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in times)
    print("\n" + json.dumps({"megabytes": peak / 1000, "seconds": seconds, "did": watch.seen}))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _kilobytes(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))


def _translate() -> None:
    from tfm.engine import Embedder, Generator, Translator
    from tfm.engine.runs.load import load_run
    from tfm.seq2seq.decoding.config import DecodingConfig
    from tfm.seq2seq.decoding.greedy import Greedy
    from tfm.system.reporter import Console

    loaded: Any = load_run("run", None, device="cpu", warn=Console().warn)
    match loaded.description.purpose:
        case "translator":
            short = DecodingConfig(max_length_factor=0.1, max_length_offset=_PIECES)
            Translator(loaded.model, loaded.tokenizer, short).translate([TEXT], search=Greedy())
        case "language model":
            Generator(loaded.model, loaded.tokenizer).generate(["one"], search=Greedy(), max_pieces=_PIECES)
        case _:
            Embedder(loaded.model, loaded.tokenizer).embed([TEXT])


def _info() -> None:
    from tfm.cli.info import info

    info(run=Path("run"))


def _resume() -> None:
    """What `tfm train` reads of a run that goes on, but for the data."""
    from tfm.engine.runs.directory import RunDirectory
    from tfm.engine.runs.weights import load_model, load_moments, load_weights, read_weights
    from tfm.engine.training.finish import Finishing
    from tfm.engine.training.setup import read_setup
    from tfm.seq2seq.training.optimizer import MovingAverage, Optimizer
    from tfm.system.reporter import Console

    run = RunDirectory("run")
    training = run.configuration().training
    saved = run.newest_saved(Console().warn)
    Finishing(run)
    read_setup(run)
    if saved is not None:
        model, _ = load_model(saved.checkpoint)  # where training goes on, config.yaml says how large a model is
        load_weights(model, saved.checkpoint)
        load_moments(Optimizer(model, training), model, saved.checkpoint)
        if training.ema_decay:
            MovingAverage(model, training.ema_decay).restore(read_weights(model, saved.checkpoint, "ema"))


def _tokenize() -> None:
    from tfm.data.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(Path("run/tokenizer"))
    for vocabulary in (tokenizer.src, tokenizer.tgt):
        vocabulary.decode(vocabulary.encode(TEXT + " \ue000 日本"))
        vocabulary.forbidden_ids()


def _configure() -> None:
    from tfm.configs.loader import load_config, parse_config

    parse_config(load_config("run/config.yaml"))


def _look_up() -> None:
    from tfm.data.glossary import Glossary

    Glossary.load(Path("run/glossary.tsv")).wanted(TEXT)


DOORS: dict[str, Callable[[], None]] = {
    "translate": _translate,
    "info": _info,
    "resume": _resume,
    "tokenize": _tokenize,
    "configure": _configure,
    "look up": _look_up,
}
