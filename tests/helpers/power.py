"""A disk whose power fails: from the calls that a process made, the states in which it may find its files again.

What a file holds is certain where it was synced after it was written. What was written since may be there, whole, cut
anywhere, as zeros, or as anything else. A directory likewise: a name that was made, moved or removed since it was last
synced is as before or as after, each by itself. File systems that are in use promise more.
"""

import itertools
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers.syscalls import Call, mark, watch

Tree = dict[str, bytes | None]
"""Names below a folder; None for a directory."""
_BLOCK = 512


@dataclass(eq=False)
class _Node:
    """A file or a directory: as the process sees it, and what is certain to outlast a power cut."""

    is_directory: bool
    content: bytes = b""
    synced: bytes = b""
    names: "dict[str, _Node]" = field(default_factory=dict)
    synced_names: "dict[str, _Node]" = field(default_factory=dict)


_Change = list[tuple[_Node, str, _Node | None]]
"""Names that change together: directory, name, and what it leads to from now on."""


class Disk:
    """Files below a folder, as a process changes them.

    Args:
        folder: Its name in the calls.
        tree: What was there before, and certain.
    """

    def __init__(self, folder: Path, tree: Tree) -> None:
        self._folder, self._root = folder, _Node(True)
        self._pending: list[_Change] = []
        for name, content in sorted(tree.items()):
            node = _Node(content is None, content or b"", content or b"")
            parent = self._find(str(folder / name), up=1)
            assert parent is not None
            parent.names[Path(name).name] = parent.synced_names[Path(name).name] = node

    def _find(self, path: str, up: int = 0) -> _Node | None:
        """What a name leads to, or the directory that it is in."""
        node: _Node | None = self._root
        parts = Path(path).relative_to(self._folder).parts
        for part in parts[: len(parts) - up]:
            node = node.names.get(part) if node else None
        return node

    def make(self, call: Call) -> None:
        """Does what a call does."""
        if not Path(call.path).is_relative_to(self._folder) or call.path == str(self._folder):
            if call.kind == "fsync" and call.path == str(self._folder):
                self._sync(self._root)
            return
        node, parent, name = self._find(call.path), self._find(call.path, up=1), Path(call.path).name
        match call.kind:
            case "open" if parent and node is None and call.offset & os.O_CREAT:
                self._change([(parent, name, _Node(False))])
            case "open" if node and call.offset & os.O_TRUNC:
                node.content = b""
            case "mkdir" if parent and node is None:
                self._change([(parent, name, _Node(True))])
            case "write" if node:
                offset, data = call.offset, call.content
                node.content = node.content[:offset].ljust(offset, b"\0") + data + node.content[offset + len(data) :]
            case "truncate" if node:
                node.content = node.content[: call.offset].ljust(call.offset, b"\0")
            case "fsync" if node:
                self._sync(node)
            case "unlink" | "rmdir" if parent and node:
                self._change([(parent, name, None)])
            case "rename" if parent and node:
                target = self._find(call.to, up=1)
                assert target is not None
                self._change([(parent, name, None), (target, Path(call.to).name, node)])
            case _:
                pass

    def _change(self, change: _Change) -> None:
        for directory, name, node in change:
            _assign(directory.names, name, node)
        self._pending.append(change)

    def _sync(self, node: _Node) -> None:
        node.synced = node.content
        settled = [change for change in self._pending if any(directory is node for directory, _, _ in change)]
        for directory, name, target in itertools.chain.from_iterable(settled):
            _assign(directory.synced_names, name, target)
        self._pending = [change for change in self._pending if change not in settled]

    @property
    def tree(self) -> Tree:
        """As the process sees it."""
        return dict(_walk(self._root, lambda node: node.names, lambda node: node.content))

    def after_power_cuts(self, chance: random.Random, number: int) -> Iterator[Tree]:
        """States in which the files may be found now. Where names can be lost in few ways, all of these come first."""
        if len(self._pending) <= 3:
            every = itertools.product((False, True), repeat=len(self._pending))
            for kept in every:
                for choose in (lambda node: node.content, lambda node: node.synced):
                    yield self._state(kept, choose)
        for _ in range(number):
            yield self._state(self._some(chance), lambda node: _torn(node, chance))

    def _some(self, chance: random.Random) -> Sequence[bool]:
        """Which changes of names are kept: all up to one, as in a journal, or each by itself."""
        count = len(self._pending)
        if chance.random() < 0.4:
            until = chance.randint(0, count)
            return [index < until for index in range(count)]
        likely = chance.choice((0.2, 0.5, 0.8))
        return [chance.random() < likely for _ in range(count)]

    def _state(self, kept: Iterable[bool], choose: Callable[[_Node], bytes]) -> Tree:
        names: dict[int, dict[str, _Node]] = {}

        def of(directory: _Node) -> dict[str, _Node]:
            return names.setdefault(id(directory), dict(directory.synced_names))

        for directory, name, node in itertools.chain.from_iterable(itertools.compress(self._pending, kept)):
            _assign(of(directory), name, node)
        return dict(_walk(self._root, of, choose))


def _assign(names: dict[str, _Node], name: str, node: _Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _walk(
    node: _Node, names: Callable[[_Node], dict[str, _Node]], choose: Callable[[_Node], bytes], prefix: str = ""
) -> Iterator[tuple[str, bytes | None]]:
    for name, child in names(node).items():
        yield prefix + name, None if child.is_directory else choose(child)
        if child.is_directory:
            yield from _walk(child, names, choose, f"{prefix}{name}/")


def _torn(node: _Node, chance: random.Random) -> bytes:
    """What a file may hold: what was synced is certain, as far as it was not overwritten."""
    content, synced = node.content, node.synced
    if content == synced:
        return content
    certain = next((at for at, (a, b) in enumerate(zip(content, synced, strict=False)) if a != b), None)
    certain = min(len(content), len(synced)) if certain is None else certain
    size = len(content) - certain
    if size <= 0:
        return chance.choice((content, synced))
    start = certain + chance.randrange(size)
    end = min(start + _BLOCK * chance.randint(1, 8), len(content))
    match chance.choice(("whole", "synced", "cut", "zeros", "garbled", "hole", "zero block", "garbled block")):
        case "whole":
            return content
        case "synced":
            return synced
        case "cut":
            return content[:start]
        case "zeros":
            return content[:certain] + bytes(size)
        case "garbled":
            return content[:certain] + chance.randbytes(size)
        case "hole":
            return content[:start] + bytes(len(content) - start)
        case "zero block":
            return content[:start] + bytes(end - start) + content[end:]
        case _:
            return content[:start] + chance.randbytes(end - start) + content[end:]


def read_tree(folder: Path) -> Tree:
    """What is below a folder."""
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def write_tree(folder: Path, tree: Tree) -> None:
    """Puts files into a new folder."""
    folder.mkdir()
    for name, content in sorted(tree.items()):
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)


def record(told: dict[str, Any]) -> None:
    """A `before` function of the fork server: `watch`, with a mark in the log whenever a checkpoint has been saved."""
    _after_each_save(lambda target: mark(target.parent, target.name))
    watch(told)


def end_after_first_save(_: object) -> None:
    """A `before` function of the fork server: a training ends when its first checkpoint has been written."""
    _after_each_save(lambda _: os._exit(0))


def _after_each_save(call: Callable[[Path], None]) -> None:
    from tfm.engine.training import fit

    write = vars(fit)["write_checkpoint"]

    def write_and_call(target: Path, **contents: Any) -> None:
        write(target, **contents)
        call(target)

    pytest.MonkeyPatch().setattr(fit, "write_checkpoint", write_and_call)  # for good: the process is its own
