"""tfm beside transformers on several kinds of processor, as far as this machine can be each of them.

A processor with newer instructions does as if it were an older one, by the variables that torch, oneDNN and MKL read:

    AVX2           most laptops
    AVX-512        without instructions for bf16
    AVX512-BF16    AMD since Zen 4, Intel since Cooper Lake
    AMX            Intel's servers since Sapphire Rapids

For each kind and each size of model, `tfm train` as it comes stands beside the fastest settings of transformers, and
`Translator.translate` beside `generate`. The limit is the time that the matrix products of a training step take alone.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from common import (
    HERE,
    BenchmarkError,
    Contestant,
    Results,
    figures,
    machine,
    markdown_table,
    measure,
    note,
    present,
    processor_flags,
    ratios,
    read_lines,
    report_errors,
    run_in_turn,
    script,
    spread,
    under,
)
from corpora import Files, add_corpus_argument, find_corpus, head
from decoding import OURS, SEARCHES, Task, describe, train_model, transformers
from training import BEST, SIZES, best_marian, prepare, tfm

VARIABLES = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
KINDS = {
    "AVX2": ("avx2", ("avx2", "AVX2", "AVX2")),
    "AVX-512": ("avx512f", ("avx512", "AVX512", "AVX512_CORE_VNNI")),
    "AVX512-BF16": ("avx512_bf16", ("avx512", "AVX512", "AVX512_CORE_BF16")),
    "AMX": ("amx_bf16", ("avx512", "AVX512", "AVX512_CORE_AMX")),
}
"""The flag by which Linux says that a processor can be of this kind, and the values of `VARIABLES` that make it one."""
EMULATED = ("AVX2", "AVX-512")
"""Kinds without bf16 instructions, where transformers is not tried in bf16: it takes some 20 times as long."""
CORES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 64)
PRESETS = ("multi30k", "multi30k-best", "pairs", "pairs-100k", "base", "toy", "g2p")


def kinds_here() -> list[str]:
    """The kinds that this processor can be; `as it is` where its instructions are not known."""
    found = [kind for kind, (flag, _) in KINDS.items() if flag in processor_flags()]
    return found or ["as it is"]


def variables(kind: str) -> dict[str, str]:
    """The environment of a kind."""
    return dict(zip(VARIABLES, KINDS[kind][1], strict=True)) if kind in KINDS else {}


def training(kind: str, size: str, files: Files, options: argparse.Namespace) -> list[str]:
    """A row of the table: tfm's training beside transformers at its best."""
    environment = variables(kind)
    prepared = prepare(files, size, options.tokens, options.work / "tfm-processors")
    precisions = ("fp32",) if kind in EMULATED else ("fp32", "bf16")
    contestants: list[Contestant] = []
    if present([Contestant(BEST, (), needs=("transformers",))]):
        contestants.append(best_marian(prepared, options.seconds, options.trial_seconds, precisions, environment))
    contestants.append(under(tfm(prepared, options.seconds, []), environment))
    results = run_in_turn(contestants, options.rounds)
    setup = results[OURS][-1].figures["setup"]
    ours = f"{setup['precision']} ({', '.join(f'{rate:.0f}' for rate in setup['rates']['layers'].values())})"
    theirs = ", ".join(contestants[0].settings.split(", ")[:2]) if len(contestants) > 1 else ""
    speeds = compared(results, BEST, "tokens_per_second")
    limits = [limit(kind, size, precision, options) for precision in dict.fromkeys(("fp32", setup["precision"]))]
    return [kind, size, ours, theirs, *speeds, *limits]


def compared(results: Results, peer: str, key: str) -> list[str]:
    """tfm's figure, the peer's, and by how much tfm is faster."""
    ours = figures(results, OURS, key)
    if peer not in results:
        return [spread(ours, digits=0), "", ""]
    theirs = figures(results, peer, key)
    return [spread(ours, digits=0), spread(theirs, digits=0), spread(ratios(ours, theirs))]


def limit(kind: str, size: str, precision: str, options: argparse.Namespace) -> str:
    """How much of a step its matrix products are, at the speed at which they go alone."""
    arguments = ["--size", size, "--tokens", options.tokens // 2, "--precision", precision]
    contestant = under(Contestant("step", script("step_limit.py", *arguments)), variables(kind))
    found = measure(contestant).figures
    return (
        f"{found['products_ms']:.0f} of {found['step_ms']:.0f} ms ({100 * found['share']:.0f} %),"
        f" {found['gflops']:.0f} GFLOP/s"
    )


def decoding(kind: str, task: Task, contestants: Sequence[Contestant], rounds: int) -> list[str]:
    """A row of the table: greedy and beam search beside transformers."""
    results = run_in_turn([under(contestant, variables(kind)) for contestant in contestants], rounds)
    row = [kind]
    for search in SEARCHES:
        row += compared(results, "transformers", f"{search}_per_second")
    return row


def decoding_task(files: Files, options: argparse.Namespace) -> tuple[Task, list[Contestant]]:
    """A model trained for a few steps, sentences, and who translates them."""
    folder = options.work / "tfm-decoding"
    folder.mkdir(parents=True, exist_ok=True)
    run = train_model(files, options.sizes[0], options.steps, folder)
    test = head(files.test, folder / "test", options.lines)
    lines = read_lines(test[0])
    task = Task(run, folder, *test, len(lines), lines[0], beam_size=5, length_penalty=0.6, repeats=1)
    return task, [*transformers(task, describe(run)), Contestant(OURS, script("decode_tfm.py", *task.arguments(OURS)))]


def processes_table() -> str:
    """What `tfm train` would start on 1 to 64 cores, if memory allows: processes x threads, parts of a batch."""
    import torch

    from tfm.configs import load_config, parse_config
    from tfm.engine.training.precision import layer_matrices
    from tfm.engine.training.setup import divide, part_overhead
    from tfm.seq2seq.model import Transformer

    rows: list[list[str]] = []
    for name in PRESETS:
        settings = parse_config(load_config(name))
        with torch.device("meta"):
            size = settings.tokenizer.vocab_size
            model = Transformer(settings.model, src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True)
        config = settings.training
        update = {"batches": config.grad_accum_steps, "tokens": config.max_tokens_per_batch}
        found = [divide(cores, **update, overhead=part_overhead(layer_matrices(model))) for cores in CORES]
        parts = f"{config.grad_accum_steps} x {config.max_tokens_per_batch:,}"
        rows.append([f"`{name}`", parts, *(f"{each.ranks} x {each.threads}, {each.parts}" for each in found)])
    return markdown_table(["preset", "batches x tokens", "1 core", *(f"{cores} cores" for cores in CORES[1:])], rows)


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_argument(parser)
    parser.add_argument("--kinds", nargs="+", help="default: all that this processor can be")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["tiny", "small"], help="default: tiny small")
    parser.add_argument("--tokens", type=int, default=4096, help="of an update; default: 4096")
    parser.add_argument("--rounds", type=int, default=2, help="default: 2")
    parser.add_argument("--seconds", type=float, default=18, help="of training a round; default: 18")
    parser.add_argument("--trial-seconds", type=float, default=9, help="for each setting of transformers; default: 9")
    parser.add_argument("--lines", type=int, default=1000, help="to translate; 0 for no decoding; default: 1000")
    parser.add_argument("--steps", type=int, default=400, help="to train the model that decodes; default: 400")
    parser.add_argument("--cores", action="store_true", help="only print what would be started on 1 to 64 cores")
    parser.add_argument(
        "--work", type=Path, default=HERE / "scratch", help="where files go; default: benchmarks/scratch"
    )
    options = parser.parse_args()
    if options.cores:
        print(processes_table())
        return
    kinds = options.kinds or kinds_here()
    if unknown := sorted(set(kinds) - set(kinds_here())):
        raise BenchmarkError(f"this processor cannot be {', '.join(unknown)}; it can be {', '.join(kinds_here())}")

    print(f"## Kinds of processor\n\n{machine()}")
    note(f"* {options.rounds} rounds in turn of {options.seconds:g} s each, updates of {options.tokens:,} tokens")
    files = find_corpus(options.corpus, options.work)
    rows = [training(kind, size, files, options) for kind in kinds for size in options.sizes]
    header = ["kind", "model", "tfm takes (GFLOP/s in fp32, bf16)", "transformers at its best", "tfm, target tokens/s"]
    header += ["transformers", "tfm is faster by", "products of a step in fp32", "and in bf16, where taken"]
    note(markdown_table(header, [row + [""] * (len(header) - len(row)) for row in rows]))
    if options.lines:
        task, contestants = decoding_task(files, options)
        header = ["kind", "greedy, sentences/s", "transformers", "tfm is faster by"]
        header += ["beam 5, sentences/s", "transformers", "tfm is faster by"]
        note(markdown_table(header, [decoding(kind, task, contestants, options.rounds) for kind in kinds]))


if __name__ == "__main__":
    report_errors(main)
