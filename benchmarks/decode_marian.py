"""One contestant of decoding.py: the same weights in MarianMTModel, `generate` on length-sorted batches."""

from decode_timing import decoding_arguments, time_decoding


def main() -> None:
    """Loads, translates, prints the figures."""
    parser = decoding_arguments()
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()

    import torch
    from marian import marian_from_tfm
    from train_marian import PAD_ID, pad

    from tfm.data.tokenizer import EOS_ID
    from tfm.engine import Translator

    translator = Translator.load(options.run)  # for the weights and the vocabulary alone
    model, vocabulary = marian_from_tfm(translator.model), translator.tokenizer
    forbidden = vocabulary.tgt.forbidden_ids()

    @torch.inference_mode()
    def generate(rows: list[list[int]], beam_size: int) -> list[list[int]]:
        input_ids = pad(rows, PAD_ID)
        return model.generate(
            input_ids=input_ids,
            attention_mask=(input_ids != PAD_ID).long(),
            num_beams=beam_size,
            do_sample=False,
            length_penalty=options.length_penalty,
            max_length=translator.model.config.max_seq_len,
            suppress_tokens=forbidden,
        ).tolist()

    def translate(texts: list[str], beam_size: int) -> list[str]:
        rows = [[*vocabulary.src.encode(text), EOS_ID] for text in texts]
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
        found: dict[int, str] = {}
        for start in range(0, len(order), options.batch_size):
            batch = order[start : start + options.batch_size]
            for i, ids in zip(batch, generate([rows[i] for i in batch], beam_size), strict=True):
                found[i] = vocabulary.tgt.decode(ids)
        return [found[i] for i in range(len(rows))]

    time_decoding(options, {"greedy": translate, "beam": translate})


if __name__ == "__main__":
    main()
