"""The package for Argos Translate: its form, its vocabulary that cleans, and that Argos Translate gives the same."""

import io
import json
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.tokenizer import Tokenizer
from tfm.engine.export.argos import cleaning_model, write_package
from tfm.engine.exported_searcher import load_ctranslate2
from tfm.engine.runs.directory import RunDirectory
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.system.errors import ModelError, UsageError

pytest.importorskip("ctranslate2")
SIZES: dict[str, Any] = {"num_encoder_layers": 1, "num_decoder_layers": 1}


@pytest.fixture(scope="module")
def run(trained_run: Callable[..., Path]) -> Path:
    return trained_run(separate=False, decoding=DecodingConfig(), **SIZES)


def package_of(run: Path, languages: tuple[str, str] = ("en", "de"), quantization: str = "float32") -> bytes:
    stream = io.BytesIO()
    directory = RunDirectory(run)
    write_package(directory, directory.find_model(), stream, languages, quantization=quantization)
    return stream.getvalue()


def test_the_form_of_a_package(run: Path, tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    with zipfile.ZipFile(io.BytesIO(package_of(run, ("en", "pt_BR")))) as package:
        assert {name.removeprefix("translate-en_pt-BR/") for name in package.namelist()} == {
            *("metadata.json", "sentencepiece.model", "README.md"),
            *("model/model.bin", "model/config.json", "model/shared_vocabulary.json"),
        }
        package.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    described = json.loads((folder / "metadata.json").read_text())
    assert described["from_code"] == "en" and described["from_name"] == "English"
    assert described["to_code"] == "pt-BR" and "Portuguese" in described["to_name"]
    assert "int8" not in (folder / "README.md").read_text() and "float32" in (folder / "README.md").read_text()
    vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    export = load_ctranslate2(folder / "model", device="cpu")
    results = export.translate_batch([vocabulary.encode(src, out_type=str) for src, _ in pairs])
    outputs = [vocabulary.decode_pieces(one.hypotheses[0]) for one in results]
    assert sum(output == tgt for output, (_, tgt) in zip(outputs, pairs, strict=True)) >= len(pairs) / 2


@pytest.fixture(scope="module")
def cleaning(tokenizer: Tokenizer) -> Any:
    """A vocabulary that cleans."""
    return sentencepiece.SentencePieceProcessor(model_proto=cleaning_model(tokenizer.src.model))  # pyright: ignore[reportCallIssue]


ODD = [
    "",
    "  a  b ",
    "a\tb\x07\x85c",
    "cafe\u0301",
    "\u200bsoft\u00adhyphen",
    "\u2581 \ue000",
    "\u212b\u3000\u1100\u1161\u11a8",
]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_the_vocabulary_cleans_as_tfm_does(cleaning: Any, tokenizer: Tokenizer, text: str) -> None:
    assert cleaning.encode(text, out_type=str) == tokenizer.src.encode_as_pieces(text)


@given(
    text=st.text(
        st.characters(exclude_categories=["Cs", "Cn", "Mn", "Mc", "Me"], exclude_characters="\x00"), max_size=12
    )
)
def test_so_it_does_with_any_text_without_marks(cleaning: Any, tokenizer: Tokenizer, text: str) -> None:
    if unicodedata.is_normalized("NFC", text.replace("\u00ad", "")):  # or characters far apart may come together
        assert cleaning.encode(text, out_type=str) == tokenizer.src.encode_as_pieces(text)


def test_what_argos_cannot_take_is_refused(run: Path, trained_run: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="does not know them; add --tgt-language CODE"):
        package_of(run, ("en", ""))
    two = trained_run(separate=True, decoding=DecodingConfig(), **SIZES)
    with pytest.raises(ModelError, match=r"this model has two \(tokenizer.separate\)"):
        package_of(two)
    learned = trained_run(separate=False, decoding=DecodingConfig(), positions="learned", **SIZES)
    with pytest.raises(ModelError, match="the learned positions of this model end at 40"):
        package_of(learned)


@pytest.mark.slow
def test_argos_translate_gives_what_the_export_gives(
    run: Path, tmp_path: Path, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, place in (("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / place))
    reason = "needs argostranslate, which tfm does not: pip install argostranslate"
    argos = pytest.importorskip("argostranslate.package", reason=reason)
    translating = pytest.importorskip("argostranslate.translate", reason=reason)
    file = tmp_path / "en-de.argosmodel"
    file.write_bytes(package_of(run))
    argos.install_from_path(file)
    (package,) = argos.get_installed_packages()
    assert (package.from_code, package.to_code, package.type) == ("en", "de", "translate")

    class Whole:
        """Instead of a model that would be fetched."""

        def split_sentences(self, text: str) -> list[str]:
            return [text]

    export = load_ctranslate2(package.package_path / "model", device="cpu")
    tokenizer = RunDirectory(run).load_tokenizer(RunDirectory(run).find_model().description.tokenizer_sha256, run)
    ids = {tokenizer.tgt.piece(i): i for i in range(len(tokenizer.tgt))}
    for text in [*(src for src, _ in pairs), "cafe\u0301  sees\tthe\u200b house."]:
        (found, *_) = translating.apply_packaged_translation(package, text, export, Whole(), 1)
        pieces = tokenizer.src.encode_as_pieces(text)
        (result,) = export.translate_batch([pieces], beam_size=4, length_penalty=0.2)
        assert found.value == tokenizer.tgt.decode(ids[piece] for piece in result.hypotheses[0])
