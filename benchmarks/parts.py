"""See why each part of a Transformer is there: swap one part of an ordinary model from outside, train, and look.

The ordinary models are those of the presets `toy` and `toy-decoder`, unmodified. Each variant is a function of
`swaps.py` that is given a freshly built one and puts something else in the place of one part. All are trained on the
toy language with the same seed, the same batches in the same order, as many updates, and the same learning rates.

OUTPUT holds `parts.jsonl`, one line for each point of a curve and one for the end of each training, and the pictures.
A training whose end is in the file is not made again: where none is missing, the table and the pictures are drawn anew.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from common import HERE, BenchmarkError, machine, markdown_table, note, report_errors, say
from swaps import ENCODER_DECODER, TOGETHER, VARIANTS, Swap
from torch import Tensor, nn

from tfm.configs import RunConfig, load_config, parse_config
from tfm.data.cleaning import clean
from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine.device import keep_freed_memory
from tfm.engine.evaluation.loss import evaluate_loss
from tfm.engine.evaluation.scores import score
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import build_model, count_parameters
from tfm.engine.training.build import StoreBatches, build_loss, describe_model
from tfm.engine.training.prepare import PreparedData, prepare_data
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.search import SearchState, Task
from tfm.seq2seq.model.attention import attention_maps
from tfm.seq2seq.model.masks import pad
from tfm.seq2seq.training.batch import Batch
from tfm.seq2seq.training.optimizer import Optimizer
from tfm.seq2seq.training.schedule import learning_rate
from tfm.seq2seq.training.update import Trainer, seed_torch
from tfm.system.errors import TrainingDiverged
from tfm.system.files import remove_tree
from tfm.system.reporter import Quiet

CPU = torch.device("cpu")
STEPS, TOKENS = 900, 1024
"""Updates, and tokens of a batch: half of the preset's batches, for more updates in the same time."""
POINTS = 12
"""Of each curve."""

Record = dict[str, Any]
"""A line of parts.jsonl."""


@dataclass(frozen=True)
class Bench:
    """What all variants share.

    Attributes:
        prepared: The toy language and its vocabulary, which both presets have in common.
        steps: Updates of each training.
        sentences: Of the validation set that are translated at the end.
    """

    prepared: PreparedData
    steps: int
    sentences: int

    def run(self, name: str, seed: int) -> list[Record]:
        """Trains a variant; the points of its curve, and its end."""
        trainer, start = self.trainer(name, seed), time.perf_counter()
        head = {"variant": name, "seed": seed, "steps": self.steps}
        said = machine()
        before = look(trainer.model, self.first_batch())
        points = [head | point for point in self.train(trainer)]
        model = trainer.model.eval()
        end: Record = {"end": True, "parameters": count_parameters(model), "updates": trainer.progress.step}
        end |= {f"{key}_before": value for key, value in before.items()}
        end |= look(model, self.first_batch()) | self.translations(model)
        return [*points, head | end | {"seconds": round(time.perf_counter() - start, 1), "machine": said}]

    def trainer(self, name: str, seed: int) -> Trainer:
        """What `tfm train` would put together, but that the part is swapped before the optimizer sees the model."""
        settings = preset(name)
        config = replace(settings.training, seed=seed, max_steps=self.steps, max_tokens_per_batch=TOKENS)
        description = describe_model(settings, self.prepared.tokenizer, self.prepared.train.facts)
        seed_torch(config.seed, "weights")
        model = build_model(description)
        VARIANTS[name](model)
        return Trainer(
            model=model,
            optimizer=Optimizer(model, config),
            average=None,
            config=config,
            loss=build_loss(description, config, torch.float32),
            provider=StoreBatches(self.prepared.train, config, CPU),
        )

    def train(self, trainer: Trainer) -> Iterator[Record]:
        """Makes the updates; now and then the mean training loss since the last time, and the validation loss."""
        progress, every = trainer.progress, max(self.steps // POINTS, 1)
        try:
            for step in range(1, self.steps + 1):
                trainer.update(learning_rate(step, trainer.config, self.steps))
                if step % every == 0 or step == self.steps:
                    dev = evaluate_loss(trainer.model.eval(), self.dev_batches()).loss
                    yield {"step": step, "train_loss": progress.mean_loss, "dev_loss": dev}
                    progress.loss_sum, progress.loss_tokens = 0.0, 0
        except TrainingDiverged as error:
            say(str(error))  # the curve ends here; bad updates were not applied, so there is a model to look at

    def dev_batches(self) -> Iterator[Batch]:
        """The whole validation set."""
        return StoreBatches(self.prepared.dev, preset("base").training, CPU).all()

    def first_batch(self) -> Batch:
        """Some of it."""
        return next(self.dev_batches())

    def translations(self, model: Any) -> Record:
        """Scores of greedy translations."""
        pairs = self.prepared.dev_pairs[: self.sentences]
        outputs = translate(model, self.prepared.tokenizer, [src for src, _ in pairs])
        scores = {name: score(name, outputs, [[clean(tgt)] for _, tgt in pairs]) for name in ("exact", "bleu")}
        return {name: one.value for name, one in scores.items()} | {
            "sentences": len(pairs),
            "empty": sum(not output for output in outputs),
            "signature": scores["bleu"].signature,
            "example": [*pairs[0], outputs[0]],
        }


def preset(name: str) -> RunConfig:
    """The settings of the ordinary model of a variant."""
    return parse_config(load_config("toy" if VARIANTS[name] in ENCODER_DECODER else "toy-decoder"))


@torch.inference_mode()
def look(model: nn.Module, batch: Batch) -> Record:
    """What the first attention does: the variance of the numbers that its softmax takes, and its largest weights."""
    with attention_maps(model.eval(), scores=True) as maps:
        model(batch.src, batch.tgt_in)
    scores = next(iter(maps.values()))[0]  # (B, H, T, S)
    seen = scores.isfinite()
    mean = scores.masked_fill(~seen, 0).sum(-1) / seen.sum(-1)
    variance = ((scores - mean[..., None]) ** 2)[seen].mean()
    return {"score_variance": variance.item(), "largest_weight": scores.softmax(-1).amax(-1).mean().item()}


class _State:
    """For each row its source, and all that has been said."""

    def __init__(self, src: Tensor) -> None:
        self.src, self.tgt = src, torch.empty(len(src), 0, dtype=torch.long)

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """See `SearchState`."""
        del sentences
        self.src, self.tgt = self.src[rows], self.tgt[rows]


@torch.inference_mode()
def translate(model: Any, tokenizer: Tokenizer, sources: Sequence[str]) -> list[str]:
    """Greedy translations, each token by the whole model over all that has been said.

    tfm's own decoder keeps keys and values, and knows the ordinary parts alone. Here nothing is kept: whatever a
    variant may see in training, nothing stands after the newest token.
    """
    ids = [tokenizer.src.encode(clean(source)) for source in sources]
    forbidden = list(tokenizer.tgt.forbidden_ids())

    def step(last: Tensor, position: int, state: SearchState) -> Tensor:
        assert isinstance(state, _State) and state.tgt.size(1) == position
        state.tgt = torch.cat([state.tgt, last[:, None]], dim=1)
        logits = model(state.src, state.tgt)[:, -1].contiguous()
        logits[:, forbidden] = -math.inf
        return logits

    longest = model.config.max_seq_len
    limits = [min(2 * len(one) + 10, longest) for one in ids]  # longer than any sentence of the toy language needs
    task = Task(max_lengths=limits, bos_id=BOS_ID, eos_id=EOS_ID)
    found = Greedy()(step, _State(pad([[*one, EOS_ID] for one in ids])), task)
    return [tokenizer.tgt.decode(best.ids) for (best,) in found]


# --- what is shown ---


COLOURS = ("#333333", "#b0452f", "#2f6fb0", "#2e7d4f")
PAPER = "#fdfdf8"
"""The background of a picture, so that it can be read on a dark page, too."""


def read(path: Path, steps: int) -> list[Record]:
    """The records of trainings of so many updates, none if there is no file yet."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [record for record in map(json.loads, lines) if record["steps"] == steps]


def curves(records: Iterable[Record], name: str) -> dict[int, list[Record]]:
    """The points of a variant, by seed."""
    found: dict[int, list[Record]] = {}
    for record in records:
        if record["variant"] == name and "end" not in record:
            found.setdefault(record["seed"], []).append(record)
    return found


def ends(records: Sequence[Record], name: str) -> list[Record]:
    """The ends of the trainings of a variant, each with its last losses."""
    points = curves(records, name)
    of_it = [record for record in records if record["variant"] == name and "end" in record]
    return [(points[record["seed"]][-1] if record["seed"] in points else {}) | record for record in of_it]


def figure(found: Sequence[Record], key: str, digits: int) -> str:
    """The mean of all seeds, with the least and the greatest if they differ."""
    values = [record[key] for record in found if record.get(key) is not None]
    if not values:
        return "none"
    mean, *bounds = (f"{value:.{digits}f}" for value in (statistics.mean(values), min(values), max(values)))
    return mean if len(set(bounds)) == 1 else f"{mean} ({' .. '.join(bounds)})"


def rows(records: Sequence[Record]) -> Iterator[tuple[str, ...]]:
    """For each variant its name, seeds, losses and scores."""
    for name in VARIANTS:
        if found := ends(records, name):
            losses = figure(found, "train_loss", 2), figure(found, "dev_loss", 2)
            scores = figure(found, "exact", 1), figure(found, "bleu", 1)
            yield f"`{name}`", ", ".join(str(one["seed"]) for one in found), *losses, *scores


def table(records: Sequence[Record]) -> str:
    """What came out, and what the paper has in each place."""
    header = "variant", "seeds", "training loss", "validation loss", "exact, %", "BLEU", "what was there"
    lines = [(*row, VARIANTS[row[0].strip("`")].__doc__ or "") for row in rows(records)]
    return markdown_table(header, lines)


def score_table(records: Sequence[Record]) -> str:
    """What goes into the softmax of the first attention, and what comes out: before training, and after it."""
    header = "variant", "variance of the scores, before", "after", "mean of the largest weights, before", "after"
    keys = "score_variance_before", "score_variance", "largest_weight_before", "largest_weight"
    found = {swap.__name__: ends(records, swap.__name__) for swap in TOGETHER["attention"]}
    digits = 1, 1, 2, 2
    lines = [
        (f"`{name}`", *(figure(one, key, places) for key, places in zip(keys, digits, strict=True)))
        for name, one in found.items()
        if one
    ]
    return markdown_table(header, lines)


def draw(records: Sequence[Record], swaps: Sequence[Swap], picture: Path) -> None:
    """Training loss on the left, validation loss on the right, a line for each seed."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = picture.stem  # the same curves give the same file
    from matplotlib import pyplot as plt

    chart, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained", facecolor=PAPER)
    labels: list[tuple[float, str, str]] = []
    for swap, colour in zip(swaps, COLOURS, strict=False):
        found = ends(records, swap.__name__)
        for points in curves(records, swap.__name__).values():
            for axis, key in zip(axes, ("train_loss", "dev_loss"), strict=True):
                axis.plot([p["step"] for p in points], [p[key] for p in points], color=colour, linewidth=1.6)
        if found:
            height = math.exp(statistics.mean(math.log(one["dev_loss"]) for one in found))
            words = swap.__name__.replace("_", " ")
            labels.append((height, f"{words}: {figure(found, 'exact', 1).split()[0]} % exact", colour))
    for axis, title in zip(axes, ("training loss", "validation loss"), strict=True):
        axis.set(title=f"{title}, nats per token", xlabel="updates", yscale="log", facecolor=PAPER)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    _label(axes[1], labels)
    chart.savefig(picture, metadata={"Date": None})
    plt.close(chart)


def _label(axis: Any, labels: Iterable[tuple[float, str, str]]) -> None:
    """Writes each name where its curve ends, no two of them upon each other."""
    bottom, top = (math.log(bound) for bound in axis.get_ylim())
    lowest = -math.inf
    for height, words, colour in sorted(labels):
        place = max((math.log(height) - bottom) / (top - bottom), lowest + 0.08)
        lowest = place
        axis.annotate(words, (1.02, place), xycoords="axes fraction", color=colour, va="center", annotation_clip=False)


def main() -> None:
    """Parses the command line, trains what is missing, prints the table, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"of {', '.join(VARIANTS)}; default: all")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"updates of each training; default: {STEPS}")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="default: 1")
    parser.add_argument("--sentences", type=int, default=200, help="to translate at the end; default: 200")
    parser.add_argument("--output", type=Path, default=HERE / "scratch", help="default: benchmarks/scratch")
    options = parser.parse_args()
    names: list[str] = options.only or list(VARIANTS)
    if unknown := set(names) - set(VARIANTS):
        raise BenchmarkError(f"no variant {', '.join(sorted(unknown))}; there are {', '.join(VARIANTS)}")

    file: Path = options.output / "parts.jsonl"
    done = {(record["variant"], record["seed"]) for record in read(file, options.steps) if "end" in record}
    missing = [(name, seed) for seed in options.seeds for name in names if (name, seed) not in done]
    options.output.mkdir(parents=True, exist_ok=True)
    if missing:
        train(missing, file, options.steps, options.sentences)
    records = read(file, options.steps)
    note(table(records))
    note(score_table(records))
    for name, swaps in TOGETHER.items():
        if sum(bool(ends(records, swap.__name__)) for swap in swaps) > 1:
            draw(records, swaps, options.output / f"parts-{name}.svg")
            note(f"Drawn: parts-{name}.svg")


def train(missing: Sequence[tuple[str, int]], file: Path, steps: int, sentences: int) -> None:
    """Makes trainings; each adds its lines to the file when it ends."""
    keep_freed_memory()
    work = RunDirectory(file.parent / "parts-work")
    bench = Bench(prepare_data(preset("base"), work, given_tokenizer=None, reporter=Quiet()), steps, sentences)
    for name, seed in missing:
        say(f"{name}, seed {seed}")
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in bench.run(name, seed)]
        with file.open("a", encoding="utf-8") as out:
            out.writelines(lines)
    remove_tree(work.path)


if __name__ == "__main__":
    report_errors(main)
