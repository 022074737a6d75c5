"""One contestant of decoding.py: tfm's own Translator."""

from decode_timing import decoding_arguments, time_decoding


def main() -> None:
    """Loads, translates, prints the figures."""
    options = decoding_arguments().parse_args()

    from tfm.engine import Translator

    translator = Translator.load(options.run)

    def translate(texts: list[str], beam_size: int) -> list[str]:
        search = translator.search(beam_size, options.length_penalty)
        found = translator.translate(texts, search=search, repair=False)  # one search, as the others do
        return [translation.text for translation in found]

    time_decoding(options, {"greedy": translate, "beam": translate})


if __name__ == "__main__":
    main()
