"""Files: old content or new, never half; one writer per directory; and the disk's refusals in words."""

import bz2
import errno
import gzip
import json
import lzma
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfm.data.reading import read_lines
from tfm.system import files
from tfm.system.compression import COMPRESSIONS
from tfm.system.errors import ClosedPipe, EnvironmentFault, ModelError
from tfm.system.files import (
    BinaryOutputFile,
    DirectoryLock,
    LineLog,
    OutputFile,
    ResumedFile,
    json_bytes,
    make_directory,
    read_sealed,
    remove_debris,
    remove_tree,
    replace_file,
    replace_json,
    replace_sealed,
    sha256_bytes,
    sha256_file,
    staged_directory,
    write_file,
)

NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
needs_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a call of the operating system fail as on a full disk, from now on."""

    def fail(call: str) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise NO_SPACE

        if call == "open":
            monkeypatch.setattr(files, "open", refuse, raising=False)
        else:
            monkeypatch.setattr(os, call, refuse)

    return fail


# One file


def test_content_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    replace_file(path, b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["a.txt"]


@pytest.mark.parametrize("call", ["open", "fsync", "replace", "unlink"])
@pytest.mark.parametrize("old", [b"old", None])
def test_failure_at_any_call_leaves_old_or_new_content(
    tmp_path: Path, failing: Callable[[str], None], call: str, old: bytes | None
) -> None:
    path = tmp_path / "a.txt"
    if old is not None:
        path.write_bytes(old)
    failing(call)
    if call == "unlink":  # only needed after another failure
        replace_file(path, b"new")
        assert path.read_bytes() == b"new"
        return
    with pytest.raises(EnvironmentFault, match=r"cannot write .*a\.txt.*: No space left on device, .* MB free"):
        replace_file(path, b"new")
    assert (path.read_bytes() if path.exists() else None) == old
    assert names(tmp_path) == (["a.txt"] if old is not None else [])


def test_failed_sync_of_the_directory_leaves_the_new_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise NO_SPACE

    monkeypatch.setattr(files, "sync_directory", refuse)
    with pytest.raises(EnvironmentFault):
        replace_file(tmp_path / "a.txt", b"new")
    assert (tmp_path / "a.txt").read_bytes() == b"new"


def test_failure_while_cleaning_up_does_not_hide_the_first_one(tmp_path: Path, failing: Callable[[str], None]) -> None:
    failing("replace")
    failing("unlink")
    with pytest.raises(EnvironmentFault, match="No space left"):
        replace_file(tmp_path / "a.txt", b"new")


@pytest.mark.skipif(os.name == "nt", reason="directories are not synced on Windows")
def test_file_is_synced_before_it_is_renamed_and_the_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def spy(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: (calls.append(name), real(*arguments))[1]

    monkeypatch.setattr(os, "fsync", spy("sync", os.fsync))
    monkeypatch.setattr(os, "replace", spy("rename", os.replace))
    replace_file(tmp_path / "a.txt", b"new")
    assert calls == ["sync", "rename", "sync"]


@needs_full_device
def test_full_device_names_path_reason_and_space(tmp_path: Path) -> None:
    for write in (
        lambda: write_file(Path("/dev/full"), b"x" * 100_000),
        lambda: LineLog(Path("/dev/full")).append({"step": 1}),
    ):
        with pytest.raises(EnvironmentFault, match=r"cannot write /dev/full: No space left on device, [\d.]+ MB free"):
            write()


@pytest.mark.skipif(os.name == "nt", reason="directories are not synced on Windows")
def test_each_new_directory_and_each_new_log_is_synced_in_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(files, "sync_directory", lambda path: synced.append(path.relative_to(tmp_path).as_posix()))
    make_directory(tmp_path / "a" / "b")
    make_directory(tmp_path / "a" / "b")
    assert sorted(synced) == [".", "a"]
    log = LineLog(tmp_path / "a" / "b" / "metrics.jsonl")
    log.sync()
    assert len(synced) == 2
    log.append({"step": 1})
    log.sync()
    assert synced[2:] == ["a/b"]


def test_other_reasons_are_named_without_the_space(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match=r"cannot create .*sub: Not a directory$"):
        make_directory(tmp_path / "file" / "sub")
    with pytest.raises(EnvironmentFault, match=r"cannot write .*: Is a directory$"):
        write_file(tmp_path, b"")


def test_json_has_one_spelling(tmp_path: Path) -> None:
    replace_json(tmp_path / "a.json", {"ä": [1]})
    assert (tmp_path / "a.json").read_bytes() == json_bytes({"ä": [1]}) == '{\n  "ä": [\n    1\n  ]\n}\n'.encode()


def test_hashes_of_file_and_bytes_agree(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content" * 100_000)
    assert sha256_file(tmp_path / "a") == sha256_bytes(b"content" * 100_000)


# Directories


def test_directory_appears_complete(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "run"
    with staged_directory(target) as staged:
        (staged / "sub").mkdir()
        (staged / "sub" / "a").write_text("new")
        assert not target.exists()
    assert (target / "sub" / "a").read_text() == "new"
    assert names(target.parent) == ["run"]


def test_the_current_directory_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "target").mkdir()
    monkeypatch.chdir(tmp_path / "target")
    with staged_directory(Path()) as staged:
        (staged / "a").write_text("new")
    assert (tmp_path / "target" / "a").read_text() == "new"


def test_directory_is_replaced_whole(tmp_path: Path) -> None:
    for content in ("old", "new"):
        with staged_directory(tmp_path / "run") as staged:
            (staged / content).touch()
    assert names(tmp_path / "run") == ["new"]
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_directory_stays_as_it_was_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with staged_directory(tmp_path / "run") as staged:
        (staged / "old").touch()
    with pytest.raises(error), staged_directory(tmp_path / "run") as staged:
        (staged / "new").touch()
        raise error
    assert names(tmp_path / "run") == ["old"]
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("call", ["fsync", "replace", "mkdir"])
def test_directory_that_cannot_be_staged(tmp_path: Path, failing: Callable[[str], None], call: str) -> None:
    with pytest.raises(EnvironmentFault, match="No space left"), staged_directory(tmp_path / "run") as staged:
        (staged / "a").touch()
        failing(call)
        (staged / "sub").mkdir()
    assert not (tmp_path / "run").exists()


def test_leftovers_of_an_earlier_crash_do_not_get_in(tmp_path: Path) -> None:
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "leftover").touch()
    with staged_directory(tmp_path / "run") as staged:
        (staged / "a").touch()
    assert names(tmp_path / "run") == ["a"]


def test_debris_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.partial", "step-5.partial", "b.removed.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inside").touch()
    (tmp_path / "model.json.partial").touch()
    (tmp_path / "step-4").mkdir()
    (tmp_path / "step-4" / "kept.partial").touch()
    (tmp_path / "partial").touch()
    remove_debris(tmp_path)
    assert names(tmp_path) == ["partial", "step-4"]
    assert names(tmp_path / "step-4") == ["kept.partial"]


def test_a_link_is_removed_and_its_target_is_not(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "a").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "absent")
    assert names(tmp_path) == ["target"] and names(tmp_path / "target") == ["a"]


# Logs


@pytest.fixture
def log(tmp_path: Path) -> LineLog:
    log = LineLog(tmp_path / "metrics.jsonl")
    for step in (1, 2, 3):
        log.append({"step": step, "text": "ä\u2028"})
    return log


def test_log_grows_by_lines(log: LineLog) -> None:
    assert [record["step"] for record in log.records()] == [1, 2, 3]
    assert log.path.read_bytes().count(b"\n") == 3


def test_log_is_cut_back(log: LineLog) -> None:
    log.keep(lambda record: record["step"] <= 2)
    log.append({"step": 3, "text": "again"})
    assert [record["step"] for record in log.records()] == [1, 2, 3]
    assert log.records()[0]["text"] == "ä\u2028"
    log.keep(lambda record: False)
    assert log.path.read_bytes() == b""


@pytest.mark.parametrize("torn", [b'{"step": 4, "te', b'{"text": "\xc3', b"\0\0\0\0", b"4"])
def test_torn_last_line_is_left_out_and_cut_off(log: LineLog, torn: bytes) -> None:
    log.path.write_bytes(log.path.read_bytes() + torn)
    assert [record["step"] for record in log.records()] == [1, 2, 3]
    log.keep(lambda record: True)
    log.append({"step": 4})
    assert [json.loads(line)["step"] for line in log.path.read_bytes().splitlines()] == [1, 2, 3, 4]


def test_damaged_lines_are_counted_and_the_file_is_kept_aside(log: LineLog) -> None:
    log.append({"step": 1})
    with open(log.path, "ab") as file:
        file.write(b"\xff\x00 not JSON\n[1]\n\n")
    log.append({"step": 2})
    as_it_was = log.path.read_bytes()
    assert log.keep(lambda record: True) == 2
    assert log.records()[-2:] == [{"step": 1}, {"step": 2}]
    assert log.path.with_name(log.path.name + ".damaged").read_bytes() == as_it_was
    assert log.keep(lambda record: True) == 0


def test_an_object_that_the_log_cannot_have_counts_as_damage(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "metrics.jsonl", lambda record: "step" in record)
    log.append({"step": 1})
    log.append({"stop": 2})
    assert log.records() == [{"step": 1}]
    assert log.keep(lambda record: True) == 1


def test_log_that_is_not_there(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "metrics.jsonl")
    log.keep(lambda record: True)
    assert log.records() == [] and not log.path.exists()


# JSON with a hash of itself


def test_what_was_sealed_is_read_back(tmp_path: Path) -> None:
    replace_sealed(tmp_path / "plan.json", {"max_steps": 5, "text": "ä"})
    assert read_sealed(tmp_path / "plan.json") == {"max_steps": 5, "text": "ä"}


def test_what_an_earlier_tfm_wrote_has_no_hash(tmp_path: Path) -> None:
    replace_json(tmp_path / "plan.json", {"max_steps": 5})
    assert read_sealed(tmp_path / "plan.json") == {"max_steps": 5}


def test_one_changed_character_of_what_was_sealed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    replace_sealed(path, {"max_steps": 512})
    path.write_bytes(path.read_bytes().replace(b"512", b"513"))
    with pytest.raises(ModelError, match=r"plan\.json is damaged: it is not what tfm wrote"):
        read_sealed(path)


# Results


def test_result_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with OutputFile(path) as stream:
        stream.write("neu\n")
        assert path.read_text() == "old"
    assert path.read_bytes() == b"neu\n"
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_unfinished_result_stays_partial(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(error), OutputFile(path) as stream:
        stream.write("half\n")
        raise error
    assert path.read_text() == "old"
    assert (tmp_path / "out.txt.partial").read_text() == "half\n"


def test_a_result_of_which_there_is_nothing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), OutputFile(tmp_path / "out.txt"):
        raise KeyboardInterrupt
    assert names(tmp_path) == []


@pytest.mark.parametrize("moment", ["_open_text", "replace_json"])
def test_an_interrupt_while_a_result_is_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    done = getattr(files, moment)

    def interrupted(*arguments: Any) -> None:
        if (stream := done(*arguments)) is not None:
            stream.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(files, moment, interrupted)
    with pytest.raises(KeyboardInterrupt), ResumedFile(tmp_path / "out.txt", "work"):
        pytest.fail("it was not interrupted")
    assert names(tmp_path) == []


@pytest.mark.parametrize("place", ["", "nowhere/out.txt"])
def test_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path, place: str) -> None:
    with pytest.raises(EnvironmentFault, match="cannot write"), OutputFile(tmp_path / place):
        pass


def test_device_is_not_renamed_over(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with OutputFile(path) as stream:
        stream.write("text\n")
    assert os.read(reader, 100) == b"text\n"
    assert path.is_fifo() and names(tmp_path) == ["pipe"]
    with pytest.raises(ClosedPipe), OutputFile(path) as stream:
        os.close(reader)
        stream.write("text\n")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
    with pytest.raises(EnvironmentFault, match="is not a regular file; name a file"), OutputFile(tmp_path / "socket"):
        pass


OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_name_says_that_a_result_is_compressed(tmp_path: Path, suffix: str) -> None:
    path, lines = tmp_path / f"out.txt{suffix.upper()}", [f"line {number} \u2028 ä" for number in range(50_000)]
    contents = list[bytes]()
    for _ in range(2):
        with OutputFile(path) as stream:
            stream.writelines(line + "\n" for line in lines)
        contents.append(path.read_bytes())
        time.sleep(1.1 if suffix == ".gz" else 0)  # its header may have the seconds
    assert contents[0] == contents[1] and names(tmp_path) == [path.name]
    assert list(read_lines(path)) == lines
    if suffix in OPENERS:
        with OPENERS[suffix](path) as file:
            assert file.read().decode() == "".join(line + "\n" for line in lines)


def test_what_will_be_compressed_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, interrupted = tmp_path / "out.gz", ResumedFile(tmp_path / "out.gz", "work")
    with pytest.raises(KeyboardInterrupt), interrupted as stream:
        stream.write("one\n")
        interrupted.save()
        raise KeyboardInterrupt
    assert (tmp_path / "out.gz.partial").read_text() == "one\n" and not path.exists()

    def refuse(*_: object) -> None:
        raise KeyboardInterrupt

    resumed = ResumedFile(path, "work")
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch, resumed as stream:
        stream.write("two\n")
        resumed.save()
        patch.setattr(shutil, "copyfileobj", refuse)  # while it is compressed
    assert resumed.done == 1 and not path.exists()
    again = ResumedFile(path, "work")
    with again as stream:
        stream.writelines(["two\n", "three\n"][again.done - 1 :])
    assert gzip.decompress(path.read_bytes()) == b"one\ntwo\nthree\n" and names(tmp_path) == ["out.gz"]


@needs_full_device
def test_a_write_that_fails_once_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "out.txt.partial").symlink_to("/dev/full")
    output = OutputFile(tmp_path / "out.txt")
    with pytest.raises(OSError, match="No space left") as refused:
        print("text", file=output.__enter__(), flush=True)
    (tmp_path / "out.txt.partial").unlink()
    (tmp_path / "out.txt.partial").touch()
    with pytest.raises(EnvironmentFault, match=r"cannot write .*out\.txt: No space left on device, .* MB free"):
        output.__exit__(OSError, refused.value)


def test_the_failure_of_another_file_is_left_to_it(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), OutputFile(tmp_path / "out.txt"):
        raise BrokenPipeError


@needs_full_device
def test_full_disk_under_a_result(tmp_path: Path) -> None:
    (tmp_path / "out.txt.partial").symlink_to("/dev/full")
    with (
        pytest.raises(EnvironmentFault, match=r"cannot write .*out\.txt: No space left on device"),
        OutputFile(tmp_path / "out.txt") as stream,
    ):
        stream.write("text")
    assert not (tmp_path / "out.txt").exists()


def test_what_other_work_left_is_never_taken_for_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt), ResumedFile(tmp_path / "out", "theirs") as stream:
        stream.write("theirs\n")
        raise KeyboardInterrupt

    def killed_after(path: Path, value: Any) -> None:
        replace_json(path, value)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "replace_json", killed_after)
        patch.setattr(ResumedFile, "_remove_if_empty", lambda self: None)  # whoever is killed tidies nothing
        ResumedFile(tmp_path / "out", "ours").__enter__()
    resumed = ResumedFile(tmp_path / "out", "ours")
    with resumed as stream:
        stream.write("ours\n")
    assert resumed.done == 0 and (tmp_path / "out").read_text() == "ours\n"


def test_lines_that_a_power_cut_may_have_taken_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BETWEEN_SAVES", 0)
    file = ResumedFile(tmp_path / "out", "work")
    file.__enter__().write("one\ntwo\n")
    file.save()
    file.stream.close()
    (tmp_path / "out.partial").write_bytes(b"one\ntwo\n\0\0\0\0\0\n")  # and then the power is cut
    resumed = ResumedFile(tmp_path / "out", "work")
    with resumed as stream:
        assert resumed.done == 2
        stream.write("three\n")
    assert (tmp_path / "out").read_text() == "one\ntwo\nthree\n" and names(tmp_path) == ["out"]


def test_what_an_interrupted_write_may_have_written_twice_does_not_count(tmp_path: Path) -> None:
    file = ResumedFile(tmp_path / "out", "work")
    with pytest.raises(KeyboardInterrupt), file as stream:
        stream.write("one\n")
        file.save()
        stream.write("two\ntwo\n")
        raise KeyboardInterrupt
    resumed = ResumedFile(tmp_path / "out", "work")
    with resumed as stream:
        stream.write("two\n")
    assert resumed.done == 1 and (tmp_path / "out").read_text() == "one\ntwo\n"


def test_an_unfinished_file_shorter_than_what_was_saved_begins_anew(tmp_path: Path) -> None:
    file = ResumedFile(tmp_path / "out", "work")
    with pytest.raises(KeyboardInterrupt), file as stream:
        stream.write("one\ntwo\n")
        file.save()
        raise KeyboardInterrupt
    (tmp_path / "out.partial").write_bytes(b"one\n")
    with ResumedFile(tmp_path / "out", "work") as stream:
        stream.write("one\n")
    assert (tmp_path / "out").read_text() == "one\n"


# Locks

HOLDER = """
import sys, time
from pathlib import Path
from tfm.system.files import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_one_holder_at_a_time_in_one_process(tmp_path: Path) -> None:
    with (
        DirectoryLock(tmp_path / "run"),
        pytest.raises(EnvironmentFault, match=r"run is in use by another tfm process"),
    ):
        DirectoryLock(tmp_path / "run")
    with DirectoryLock(tmp_path / "run"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="no such descriptors")
def test_a_lock_that_cannot_be_closed_hides_no_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the first one"), DirectoryLock(tmp_path) as lock:
        os.close(lock._file.fileno())  # pyright: ignore[reportPrivateUsage]
        raise ValueError("the first one")


def test_a_mark_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with (
        pytest.raises(EnvironmentFault, match=r"cannot remove .*out\.work\.partial"),
        ResumedFile(tmp_path / "out", "work"),
    ):
        monkeypatch.setattr(os, "unlink", refuse)
    assert (tmp_path / "out").exists()


def test_a_file_system_without_locks_is_not_said_to_be_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files, "_lock", refuse)
    with pytest.raises(EnvironmentFault, match=r"cannot lock .*run: No locks available"):
        DirectoryLock(tmp_path / "run")


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(EnvironmentFault, match="in use"):
            DirectoryLock(tmp_path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with DirectoryLock(tmp_path):
            pass


def test_killed_between_the_two_renames_the_old_directory_comes_back(tmp_path: Path) -> None:
    with staged_directory(tmp_path / "run") as staged:
        (staged / "old").touch()
    (tmp_path / "run").rename(tmp_path / "run.replaced.partial")  # as if the process had ended just here
    remove_debris(tmp_path)
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["old"]


def test_the_old_directory_comes_back_if_the_new_one_cannot_be_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged_directory(tmp_path / "run") as staged:
        (staged / "old").touch()
    replace, calls = os.replace, 0

    def failing(src: Path, dst: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(5, "Input/output error")
        replace(src, dst)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(EnvironmentFault, match="Input/output"), staged_directory(tmp_path / "run") as staged:
        (staged / "new").touch()
    assert names(tmp_path / "run") == ["old"]


def test_a_binary_output_file_can_be_written_anywhere_and_is_there_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with BinaryOutputFile(path) as stream:
        stream.seek(4)
        stream.write(b"\xff\n")
        stream.seek(0)
        stream.write(b"head")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"head\xff\n"
    with pytest.raises(RuntimeError), BinaryOutputFile(tmp_path / "none.bin") as stream:
        stream.seek(100)
        raise RuntimeError
    assert [one.name for one in tmp_path.iterdir()] == ["out.bin"]
