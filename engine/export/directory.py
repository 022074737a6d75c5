"""Everything that translating with CTranslate2 needs, in one directory.

model.bin, config.json, *_vocabulary.json    what `ctranslate2.Translator` loads
tokenizer/                                   the run's SentencePiece models
README.md                                    the lines of Python that translate with it
model.json, manifest.json, export.json       with which the directory is a run for tfm, see `runs.exported`
"""

from importlib import metadata
from pathlib import Path
from typing import Any

from ...data.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer
from ...seq2seq.model.encoder_decoder import Transformer
from ...system.errors import ModelError, UsageError
from ...system.files import staged_directory, write_file
from ..exportable import why_not_exportable
from ..exported_searcher import imported
from ..runs.checkpoint import EXPORT_MARK, StoredModel, read_file
from ..runs.directory import RunDirectory
from ..runs.exported import Origin, seal
from ..runs.weights import restore_model


def export_checkpoint(run: RunDirectory, stored: StoredModel, output: Path, *, quantization: str = "float32") -> None:
    """Writes a checkpoint as a CTranslate2 directory; an earlier export in its place is replaced in one step.

    Args:
        quantization: One of `QUANTIZATIONS`.

    Raises:
        ModelError: The weights or the tokenizer are not those of the model, or CTranslate2 cannot hold it.
        UsageError: `output` exists and is no earlier export.
        EnvironmentFault: CTranslate2 is missing, or the directory cannot be written.
    """
    empty = output.is_dir() and not any(output.iterdir())
    if (output.exists() or output.is_symlink()) and not empty and not (output / EXPORT_MARK).is_file():
        raise UsageError(f"{output} exists and was not made by tfm export; name another --output, or remove it")
    model, tokenizer = find_exportable(run, stored)
    from .readme import render_readme

    with staged_directory(output) as staged:
        write_model(model, tokenizer, staged, quantization)
        tokenizer.save(staged / "tokenizer")
        text = render_readme(stored.description, tokenizer, quantization=quantization)
        write_file(staged / "README.md", text.encode())
        origin = Origin(metadata.version("tfm"), str(stored.checkpoint), quantization)
        seal(staged, origin, read_file(stored.checkpoint, "model.json"))


def find_exportable(run: RunDirectory, stored: StoredModel) -> tuple[Transformer, Tokenizer]:
    """A checkpoint's model and its vocabularies.

    Raises:
        ModelError: They do not belong together, or CTranslate2 cannot hold them.
        EnvironmentFault: CTranslate2 is missing.
    """
    imported("exporting")
    description, model = stored.description, restore_model(stored)
    tokenizer = run.load_tokenizer(description.tokenizer_sha256, stored.checkpoint)
    largest = max(description.src_vocab_size, description.tgt_vocab_size)
    if reasons := why_not_exportable(model.config, vocab_size=largest):
        raise ModelError(f"{run} cannot be exported to CTranslate2: {'; '.join(reasons)}")
    assert isinstance(model, Transformer)
    return model, tokenizer


def write_model(model: Transformer, tokenizer: Tokenizer, directory: Path, quantization: str) -> None:
    """Writes what CTranslate2 loads into a directory."""
    from .specification import specify

    spec: Any = specify(model, tokenizer.tgt.forbidden_ids())
    for vocabulary, register in (
        (tokenizer.src, spec.register_source_vocabulary),
        (tokenizer.tgt, spec.register_target_vocabulary),
    ):
        register([vocabulary.piece(i) for i in range(len(vocabulary))])
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = map(tokenizer.tgt.piece, (UNK_ID, BOS_ID, EOS_ID))
    config.decoder_start_token = config.bos_token
    config.add_source_bos, config.add_source_eos = False, True
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(directory))
