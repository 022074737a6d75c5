"""benchmarks/splits.py on small archives: no sentence in two parts, references kept, the same files each time."""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "benchmarks" / "splits.py"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def split(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    """What the script makes of a repository with these files."""
    archive, output = folder / "repository.tar.gz", folder / name
    with tarfile.open(archive, "w:gz") as packed:
        for path, content in files.items():
            info = tarfile.TarInfo(f"repository-1234/{path}")
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    command = [sys.executable, str(SCRIPT), name, "--archive", str(archive), "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "NOT the files that were measured" in done.stdout
    return output


def test_no_english_sentence_of_tatoeba_is_in_two_parts(tmp_path: Path) -> None:
    pairs = [f"Sentence {i // 2}.\tPhrase\u202f{i} !" for i in range(2_000)]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("fra.txt", "\n".join([*pairs, pairs[0]]))
    output = split(tmp_path, "tatoeba", {"fra-eng.zip": packed.getvalue()})
    parts = {part: lines(output / f"{part}.en") for part in ("train", "valid", "test")}
    assert all(parts.values())
    assert not set(parts["train"]) & set(parts["test"]) and not set(parts["valid"]) & set(parts["test"])
    assert len(set(zip(parts["train"], lines(output / "train.fr"), strict=True))) == len(parts["train"])
    assert all(len(line.split("\t")) == 2 for line in lines(output / "test.refs.fr.tsv"))


def test_words_of_cmudict_are_letters_and_phones_without_stress(tmp_path: Path) -> None:
    words = [f"{a}{b}{c}" for a in "abcdefgh" for b in "aeiou" for c in "klmnop"]
    text = "".join(f"{word} AH0 K{i % 3}\n{word}(2) AA1 K\n" for i, word in enumerate(words)) + "3d TH R IY1 # no\n"
    output = split(tmp_path, "cmudict", {"cmudict.dict": text.encode()})
    train, test = lines(output / "train.src"), lines(output / "test.src")
    assert len(set(train)) * 2 == len(train) and not set(train) & set(test)
    assert lines(output / "test.refs.tsv") == ["AH K\tAA K"] * len(test)
    assert lines(output / "test.tgt") == ["AH K"] * len(test)


def test_a_message_of_the_documentation_is_in_one_part(tmp_path: Path) -> None:
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    body = 'msgid "Notes"\nmsgstr "Notas"\n\nmsgid "{0}"\nmsgstr "uno {0}"\n\n#, fuzzy\nmsgid "no"\nmsgstr "quizás"\n'
    files = {f"library/{i}.po": (head + body.format(f"one {i}")).encode() for i in range(200)}
    output = split(tmp_path, "documentation", files)
    parts = {part: lines(output / f"{part}.en") for part in ("train", "valid", "test")}
    assert sorted(line for part in parts.values() for line in part) == sorted(
        ["Notes", *(f"one {i}" for i in range(200))]
    )
    assert "Notes" in parts["train"] and parts["valid"] and parts["test"]


@pytest.mark.parametrize("name", ["tatoeba", "cmudict"])
def test_an_archive_without_the_file_is_refused(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "empty.tar.gz"
    with tarfile.open(archive, "w:gz"):
        pass
    command = [sys.executable, str(SCRIPT), name, "--archive", str(archive), "--output", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the archive has no " in done.stderr and "Traceback" not in done.stderr
