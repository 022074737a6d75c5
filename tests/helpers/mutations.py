"""Changes run directories as a stranger might: each is a function of a directory and a random generator.

Whoever changes a file of a checkpoint can also change the manifest, and whoever changes a vocabulary the hashes of it:
`make_match` does, so that the change reaches whatever parses the file.
"""

import json
import os
import struct
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

from tfm.system.files import json_bytes, sha256_bytes

from . import protobuf

GLOSSARY = "glossary.tsv"


def copy(source: Path, target: Path) -> None:
    """A run whose files are those of another one, under names of their own: `put` gives one of them other content."""
    for folder, _, names in os.walk(source):
        there = target / Path(folder).relative_to(source)
        there.mkdir()
        for name in names:
            os.link(Path(folder) / name, there / name)


def put(path: Path, content: bytes) -> None:
    """Writes a file anew; what else has its content keeps it."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def checkpoints(run: Path) -> list[Path]:
    """Its checkpoints."""
    return sorted((run / "checkpoints").iterdir())


def make_match(run: Path) -> None:
    """Makes hashes and sizes right again, as far as the files that hold them can be read."""
    whole = _vocabulary_matches(run / "tokenizer") if (run / "tokenizer").exists() else None
    for checkpoint in checkpoints(run):
        copied = _vocabulary_matches(checkpoint)
        _edit(checkpoint / "model.json", lambda content: content.update(tokenizer_sha256=whole or copied))  # noqa: B023
        files = {
            path.name: {"sha256": sha256_bytes(content), "size": len(content)}
            for path in sorted(checkpoint.iterdir())
            if path.name != "manifest.json"
            for content in [path.read_bytes()]
        }
        put(checkpoint / "manifest.json", json_bytes({"format": 1, "files": files}))


def _vocabulary_matches(folder: Path) -> str:
    """Makes the hashes of a vocabulary right; returns that of all of it."""
    parts = {path.name: path.read_bytes() for path in sorted(folder.glob("*.model"))}  # src before tgt, as tfm has it
    models = {name: sha256_bytes(content) for name, content in parts.items()}
    _edit(folder / "tokenizer.json", lambda content: content.update(models=models))
    return sha256_bytes(b"".join(parts.values()))


def _edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes a JSON file, unless that changes nothing or it cannot be read any more."""
    try:
        content = json.loads(path.read_bytes())
        before = json_bytes(content)
        change(content)
    except (OSError, ValueError, RecursionError, AttributeError):
        return
    if json_bytes(content) != before:
        put(path, json_bytes(content))


# Bytes


def bytes_of_a_file(run: Path, rng: Random) -> str:
    """Flips, cuts off, inserts or removes bytes of some file."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != "manifest.json")
    path = rng.choice(files)
    content = bytearray(path.read_bytes())
    what = rng.choice(["flip", "cut", "insert", "remove"])
    at = rng.randrange(len(content) + 1) if rng.random() < 0.7 else min(rng.randrange(64), len(content))
    match what:
        case "flip":
            for _ in range(rng.choice([1, 1, 2, 20])):
                if content:
                    content[min(at + rng.randrange(20), len(content) - 1)] ^= 1 << rng.randrange(8)
        case "cut":
            del content[at:]
        case "insert":
            content[at:at] = rng.randbytes(rng.choice([1, 4, 100]))
        case _:
            del content[at : at + rng.choice([1, 4, 100])]
    put(path, bytes(content))
    return f"{what} in {path.relative_to(run)} at {at}"


# JSON

_NUMBERS = [0, -1, 1, 2**31, 2**63, 10**30, 1e308, -1e308, 1e-300, float("nan"), float("inf"), 0.5, 99_999]
_STRINGS = ["", "10", "x" * 10_000, "\x1b[2J\x07", "../../../etc/passwd", "é\u202e", "a\nb", "ema", "post"]
_OTHERS = [True, False, None, [], {}, [[]], [1, 2, 3], {"a": {"b": 1}}, ["x"] * 1000]


def _value(rng: Random) -> Any:
    return deepcopy(rng.choice(rng.choice([_NUMBERS, _STRINGS, _OTHERS])))


def json_of_a_run(run: Path, rng: Random) -> str:
    """Puts something else in some place of a JSON file of a run."""
    path = rng.choice([*_json_files(run)] + [path for path in _json_files(run) if path.name == "model.json"] * 3)
    if rng.random() < 0.06:
        put(path, _no_json(rng))
        return f"{path.relative_to(run)} is no JSON"
    content = json.loads(path.read_bytes())
    said = _change_json(content, rng)
    if rng.random() < 0.2:
        said += ", " + _change_json(content, rng)
    put(path, json_bytes(content))
    return f"{path.relative_to(run)}: {said}"


def _json_files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*.json") if path.name not in ("plan.json", "finish.json"))


def _no_json(rng: Random) -> bytes:
    return rng.choice(
        [
            b"",
            b"\xff\xfe{}",
            b"\xef\xbb\xbf{}",
            b"{" * 50_000,
            b'{"a":' * 50_000,
            b"[" * 100_000 + b"]" * 100_000,
            b'{"format": 1' + b"0" * 10_000 + b"}",
            b'{"format": ' + b"9" * 5_000 + b"}",
            b"[]",
            b"null",
            b'"' + b"\\u0000" * 100 + b'"',
            b" " * 900_000 + b"{}",
            b'{"format": 1, "format": 1}',
            b"{}",
            b"NaN",
        ]
    )


def _change_json(content: Any, rng: Random) -> str:
    """Changes something in an object, at any depth; says what."""
    while True:
        inner = [key for key, value in content.items() if isinstance(value, dict) and value]
        if not inner or rng.random() < 0.35:
            break
        content = content[rng.choice(inner)]
    key = rng.choice(sorted(content)) if content else "x"
    what = rng.random()
    if what < 0.7:
        content[key] = _value(rng)
        return f"{key} = {content[key]!r:.40}"
    if what < 0.85:
        content.pop(key, None)
        return f"without {key}"
    name = rng.choice(["x", "__class__", "\x1b[0m", "y" * 5_000, "", "format", "size"])
    content[name] = _value(rng)
    return f"with {name[:20]!r} = {content[name]!r:.40}"


# Tensors


def tensors_of_a_checkpoint(run: Path, rng: Random) -> str:
    """Changes the header of a safetensors file, or the numbers."""
    files = sorted(run.rglob("*.safetensors"))
    used = [path for path in files if path.name == ("ema" if len(files) > 2 else "model") + ".safetensors"]
    path = rng.choice(files + 3 * used)
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + size]), bytearray(content[8 + size :])
    said = rng.choice([_length, _header_text, _entry, _entry, _entry, _entries, _numbers, _numbers])(header, data, rng)
    if isinstance(said, bytes):
        put(path, said + bytes(data))
        return f"{path.relative_to(run)} begins with {said[:60]!r}"
    text = json.dumps(header).encode()
    put(path, struct.pack("<Q", len(text)) + text + bytes(data))
    return f"{path.relative_to(run)}: {said}"


def _length(header: Any, data: bytearray, rng: Random) -> bytes:
    """Another length of the header."""
    text = json.dumps(header).encode()
    length = rng.choice([0, 1, len(text) - 1, len(text) + 1, len(text) + len(data) + 1, 2**31, 2**63, 2**64 - 1, 10**8])
    return struct.pack("<Q", length) + text


def _header_text(header: Any, data: bytearray, rng: Random) -> bytes:
    """A header that is no JSON, or nested, or repeats a name."""
    good = json.dumps(header).encode()
    text = rng.choice(
        [b"[]", b"", b"{", b"[" * 50_000, b'{"a":' * 20_000, good[:-1] + b"," + good[1:], b" " * 10 + good]
    )
    return struct.pack("<Q", len(text)) + text


def _entry(header: Any, data: bytearray, rng: Random) -> str:
    """Another type, shape or place of a tensor."""
    name = rng.choice(sorted(name for name in header if name != "__metadata__"))
    entry = header[name]
    what = rng.choice(["dtype", "shape", "data_offsets"])
    begin, end = entry["data_offsets"]
    entry[what] = {
        "dtype": lambda: rng.choice(["F16", "BF16", "I64", "BOOL", "F64", "F8_E4M3", "X", 5, None, "F32"]),
        "shape": lambda: rng.choice(
            [
                [2**32, 2**32],
                [2**63],
                [0],
                [],
                [-1],
                entry["shape"][::-1],
                [*entry["shape"], 1],
                [1, *entry["shape"]],
                [1.5],
                "x",
                [2**62, 4],
                [sum(entry["shape"])],
                [[1]],
            ]
        ),
        "data_offsets": lambda: rng.choice(
            [
                [end, begin],
                [begin, end + 4],
                [begin + 4, end],
                [0, end - begin],
                [0, 0],
                [2**63, 2**63 + 4],
                [-4, 0],
                [begin],
                [begin, end, end],
                [1.5, 2],
                "x",
                [0, len(data)],
            ]
        ),
    }[what]()
    if rng.random() < 0.05:
        header[name] = rng.choice([[], 5, None, {}, "x"])
    return f"{name} has {what} {header[name]!r:.100}"


def _entries(header: Any, data: bytearray, rng: Random) -> str:
    """Names swapped, removed, added; metadata."""
    names = sorted(name for name in header if name != "__metadata__")
    one, other = rng.choice(names), rng.choice(names)
    match rng.randrange(4):
        case 0:
            header[one], header[other] = header[other], header[one]
            return f"{one} and {other} swapped"
        case 1:
            del header[one]
            return f"without {one}"
        case 2:
            header[rng.choice(["x", "x" * 100_000, "encoder.layers.1000000000.x", "", "\x1b"])] = header[one]
            return f"{one} under another name, too"
        case _:
            header["__metadata__"] = rng.choice([{"a": "b" * 100_000}, {"a": 1}, [], "x", {"\x00": "\x1b[2J"}, None])
            return "other metadata"


def _numbers(header: Any, data: bytearray, rng: Random) -> str:
    """Other numbers in a tensor."""
    name = rng.choice(sorted(name for name in header if name != "__metadata__"))
    begin, end = header[name]["data_offsets"]
    value = rng.choice([float("nan"), float("inf"), 1e30, -1e30, 3e38, 1e-45, 0.0])
    count = (end - begin) // 4
    if rng.random() < 0.5:
        data[begin : begin + 4 * count] = struct.pack("<f", value) * count
        return f"{name} is {value} everywhere"
    at = begin + 4 * rng.randrange(max(count, 1))
    data[at : at + 4] = struct.pack("<f", value)
    return f"{name} has a {value}"


# Vocabularies


def vocabulary(run: Path, rng: Random) -> str:
    """Changes fields of a SentencePiece file; now and then of the copy in a checkpoint, which counts if it is alone."""
    folder = run / "tokenizer"
    if rng.random() < 0.3:
        _remove(folder)
        folder = checkpoints(run)[-1]
    path = rng.choice(sorted(folder.glob("*.model")))
    content = path.read_bytes()
    text = rng.choice([b"", b"a", b"\xff", b"a\0b", b"z" * rng.choice([100, 5_000, 1_000_000]), b"<s>", b"<0xZZ>"])
    score = rng.choice([0.0, -1.0, float("nan"), float("inf"), -1e38, 1e30])
    additions = [
        protobuf.piece(text, score, rng.choice([0, 1, 2, 3, 4, 5, 6, 7, -1])),
        protobuf.piece(b"new", score),
        protobuf.piece(b"new", -1.0, rng.choice([2, 3, 4, 5, 6])),
        protobuf.piece("日本".encode() * 500) * rng.choice([1, 2]),
        protobuf.block(2, protobuf.whole(rng.choice([3, 4, 35, 40, 41, 42, 43, 41]), rng.choice([0, 1, 5, 2**31, -1]))),
        protobuf.block(2, protobuf.block(rng.choice([44, 45, 46, 47, 48, 30]), rng.choice([b"", b"x", b"y" * 10**6]))),
        protobuf.block(3, protobuf.block(2, _characters(rng))),
        protobuf.block(3, protobuf.whole(rng.choice([3, 4, 5]), rng.choice([0, 1, 2**40]))),
        protobuf.block(5, protobuf.block(2, _characters(rng))),
        protobuf.block(4, protobuf.block(1, protobuf.block(1, b"a") + protobuf.block(2, b"b"))),
        protobuf.block(rng.choice([6, 200, 2**28]), b"x" * 10),
        rng.choice([b"\x0b", b"\x0a\xff\xff\xff\xff\x0f", b"\xff" * 20, b"\x00\x00", b"\x0a\x05abc"]),
    ]
    match rng.randrange(4):
        case 0:
            at = rng.randrange(len(content))
            changed = content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        case 1:
            changed = content[: rng.randrange(len(content))]
        case _:
            addition = rng.choice(additions)
            changed = addition + content if rng.random() < 0.3 else content + addition
    put(path, changed)
    return f"{path.relative_to(run)}: {len(changed) - len(content):+} bytes, sha256 {sha256_bytes(changed)[:12]}"


def _characters(rng: Random) -> bytes:
    """What stands in for a table of characters, a trie and its texts."""
    trie = rng.randbytes(rng.choice([0, 3, 256, 1024, 4096]))
    size = rng.choice([len(trie), len(trie) * 2, 0, 2**32 - 1])
    return struct.pack("<I", size) + trie + rng.choice([b"", b"abc", b"abc\0" * 10])


# Configurations


def configuration(run: Path, rng: Random) -> str:
    """Changes a line of config.yaml, or puts something in front of it that YAML has and a configuration does not."""
    path = run / "config.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    strange = [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "a: " + "[" * 5_000,
        "- " * 5_000,
        "a: !!python/object/apply:os.system ['touch pwned']",
        "a: !!python/name:os.system",
        "!!map {a: !!binary aGFsbG8=}",
        "\tmodel: 3",
        "x: " + "y" * 10_000_000,
        "x: " + "y" * 60_000,
        "\n".join(f"key{i}: 1" for i in range(4_000)),
        "model: {}\nmodel: {}",
        "? [a, b]\n: c",
        "--- \n--- \n",
        "%YAML 9.9\n---",
        "\x00",
        "model: \x1b[2J",
        "<<: {model: 3}",
        "model: 2026-01-01",
        "model: |\n  a\n  b",
        "1: 2",
        "true: false",
        "null: null",
    ]
    if rng.random() < 0.3:
        text = rng.choice(strange)
        put(path, (text + "\n" + ("\n".join(lines) if rng.random() < 0.5 else "") + "\n").encode())
        return f"config.yaml begins with {text[:60]!r}"
    at = rng.randrange(len(lines))
    key, _, before = lines[at].partition(":")
    values = ["0", "-1", "2147483648", "1e308", "true", "'10'", ".nan", ".inf", "[]", "{}", "null", "1" + "0" * 30]
    values += ["x" * 2_000, '"\\x1b[2J"', "[[1]]", "0x10", "1_000", "!!str 5", "*a", "&a 5", "2026-01-01 10:00:00"]
    lines[at] = rng.choice(
        [f"{key}: {rng.choice(values)}", f"{key}: {rng.choice(values)}", f"{key}x:{before}", before, "\t" + lines[at]]
    )
    put(path, ("\n".join(lines) + "\n").encode())
    return f"config.yaml:{at + 1}: {lines[at][:60]!r}"


# Glossaries


def glossary(run: Path, rng: Random) -> str:
    """Changes a list of terms."""
    path = run / GLOSSARY
    content = path.read_bytes()
    at = rng.randrange(len(content))
    stuff = [b"\t", b"\n", b"(((((", b"\x00", b"\xff", b"a" * 100_000, b"\xe2\x80\xae", b"[a-", b"x\ty\n" * 2_000]
    stuff += ["日".encode() * 1_000 + b"\tx\n", b"one\tzwei\n", b"\n\n", rng.randbytes(30)]
    changed = rng.choice([content[:at] + rng.choice(stuff) + content[at:], content[:at], rng.choice(stuff)])
    put(path, changed)
    return f"glossary: {changed[max(at - 10, 0) : at + 30]!r}"


# Files


def files(run: Path, rng: Random) -> str:
    """Puts something that is no plain file, or a strange one, in the place of a file or beside it."""
    path = rng.choice(sorted(run.rglob("*")))
    what = rng.choice(["link", "pipe", "folder", "device", "huge", "unreadable", "more", "newline", "gone", "loop"])
    there = path.relative_to(run)
    if what in ("more", "newline"):
        name = "strange" if what == "more" else "step-000007\nx\x1b[2J"
        folder = path if path.is_dir() else path.parent
        put(folder / name, rng.randbytes(50))
        if rng.random() < 0.3:
            (run / "checkpoints" / rng.choice(["step-99999999999999999999", "step-000009", "step-x"])).mkdir()
        return f"{name!r} in {there}"
    _remove(path)
    match what:
        case "link":
            path.symlink_to(rng.choice(["/dev/zero", "/etc/passwd", str(run.parent / "outside"), "../..", "nowhere"]))
        case "loop":
            path.symlink_to(path.name)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/random")
        case "huge":
            with open(path, "wb") as file:
                file.truncate(rng.choice([2**20 + 1, 2**34, 2**40]))
        case "unreadable":
            path.write_bytes(b"{}")
            path.chmod(0)
        case _:
            pass
    return f"{there} is {what}"


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in sorted(path.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        path.rmdir()
    else:
        path.unlink()
