"""Hiding tokens: which, how many, what stands in their place; and the loss of guessing them."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tfm.data.config import TokenizerConfig
from tfm.data.tokenizer import EOS_ID, FIRST_TEXT_ID, MASK_ID, PAD_ID, RESERVED_PIECES
from tfm.data.vocabulary_training import build_tokenizer
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.encoder_only import EncoderOnly
from tfm.seq2seq.training.masking import MaskedTokenLoss, Masking

V = 60
MASKING = Masking(mask_id=MASK_ID, first_piece=FIRST_TEXT_ID, vocab_size=V, eos_id=EOS_ID)


def sentences(lengths: list[int]) -> Tensor:
    rows = [F.pad(torch.randint(FIRST_TEXT_ID, V, (n,)), (0, 1), value=EOS_ID) for n in lengths]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD_ID)


def test_the_mask_piece_is_a_reserved_one_and_texts_begin_where_it_is_said() -> None:
    tokenizer = build_tokenizer(zip(["one two"], ["eins zwei"], strict=True), TokenizerConfig(vocab_size=300))
    assert tokenizer.src.piece(MASK_ID) == RESERVED_PIECES[0]
    assert max(tokenizer.src.control_ids()) == FIRST_TEXT_ID - 1


def test_so_many_pieces_of_each_sentence_are_chosen() -> None:
    torch.manual_seed(0)
    lengths = list(range(1, 80))
    ids = sentences(lengths)
    _, wanted = MASKING(ids)
    chosen = wanted != PAD_ID
    assert chosen.sum(dim=1).tolist() == [max(1, round(0.15 * n)) for n in lengths]
    assert wanted[chosen].equal(ids[chosen])
    assert not (chosen & ((ids == PAD_ID) | (ids == EOS_ID))).any()


def test_of_the_chosen_most_are_hidden_some_replaced_some_stay_and_all_else_stays() -> None:
    torch.manual_seed(0)
    ids = sentences([100] * 4000)
    hidden, wanted = MASKING(ids)
    chosen = wanted != PAD_ID
    assert hidden[~chosen].equal(ids[~chosen])
    masked = (hidden[chosen] == MASK_ID).float().mean().item()
    kept = (hidden[chosen] == ids[chosen]).float().mean().item()
    chance = 0.1 / (V - FIRST_TEXT_ID)  # a random piece that is by chance the right one
    assert masked == pytest.approx(0.8, abs=0.01)
    assert kept == pytest.approx(0.1 + chance, abs=0.01)
    others = hidden[chosen & (hidden != MASK_ID)]
    assert others.min() >= FIRST_TEXT_ID and others.max() < V
    places = chosen.float().mean(dim=0)[:100]
    assert places.min() > 0.1 and places.max() < 0.2, "every place is as likely"


def test_the_same_seed_hides_the_same_tokens() -> None:
    ids = sentences([30] * 10)
    first, other = (MASKING(ids, torch.Generator().manual_seed(seed))[0] for seed in (1, 2))
    assert MASKING(ids, torch.Generator().manual_seed(1))[0].equal(first)
    assert not other.equal(first)
    torch.manual_seed(5)
    drawn = MASKING(ids)[0]
    torch.manual_seed(5)
    assert MASKING(ids)[0].equal(drawn)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_sources", [True, False])
def test_the_loss_is_torchs_cross_entropy_of_the_chosen_of_both_sides(smoothing: float, with_sources: bool) -> None:
    torch.manual_seed(0)
    config = ModelConfig(
        architecture="encoder_only", d_model=16, d_ff=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=0
    )
    model = EncoderOnly(config, vocab_size=V).eval()
    src = sentences([9, 4, 30]) if with_sources else torch.empty(3, 0, dtype=torch.long)
    tgt = sentences([7, 12, 1])
    torch.manual_seed(3)
    loss, count = MaskedTokenLoss(MASKING, smoothing)(model, SimpleNamespace(src=src, tgt_out=tgt))
    torch.manual_seed(3)
    expected, expected_count = 0.0, 0
    for ids in (src, tgt) if with_sources else (tgt,):
        hidden, wanted = MASKING(ids)
        logits = model(hidden).flatten(0, 1)
        kinds = {"ignore_index": PAD_ID, "label_smoothing": smoothing}
        expected += F.cross_entropy(logits, wanted.flatten(), reduction="sum", **kinds).item()
        expected_count += int((wanted != PAD_ID).sum())
    assert (loss.item(), count) == (pytest.approx(expected, rel=1e-5), expected_count)
