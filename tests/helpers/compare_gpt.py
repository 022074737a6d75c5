"""Prints how far the logits and gradients of a random DecoderOnly are from those of a GPT with its weights.

Run by the peers' Python. Arguments: the folder of the benchmarks, and a ModelConfig as JSON.
"""

import json
import sys

import torch
from torch.nn import functional as F

sys.path.insert(0, sys.argv[1])
from gpt import gpt_from_tfm  # pyright: ignore[reportMissingImports]

from tfm.data.tokenizer import PAD_ID
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.decoder_only import DecoderOnly

VOCAB = 31
torch.manual_seed(1)
model = DecoderOnly(ModelConfig(**json.loads(sys.argv[2])), vocab_size=VOCAB).eval()
for weight in model.parameters():  # fresh biases are 0: wherever they went, nothing would be seen
    if weight.dim() == 1:
        torch.nn.init.normal_(weight, 1.0, 0.3)
gpt = gpt_from_tfm(model)
texts = torch.randint(PAD_ID + 1, VOCAB, (3, 10))
lengths = torch.tensor([10, 7, 1])
texts[torch.arange(10) >= lengths[:, None]] = PAD_ID
targets = texts.roll(-1, dims=1).masked_fill(texts == PAD_ID, -100)

logits = model(torch.empty(3, 0, dtype=torch.long), texts), gpt(texts, use_cache=False).logits  # (B, T, V)
real = texts != PAD_ID
for found in logits:
    F.cross_entropy(found.flatten(0, 1), targets.flatten()).backward()
ours = model.embedding.tokens.weight.grad
theirs = gpt.transformer.get_input_embeddings().weight.grad
assert ours is not None
print(
    json.dumps(
        {
            "logits": (logits[0] - logits[1])[real].abs().max().item(),
            "largest": logits[0][real].abs().max().item(),
            "gradient": (ours - theirs).norm().item() / ours.norm().item(),
        }
    )
)
