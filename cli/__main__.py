"""What `tfm` runs, and `python -m tfm.cli`."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line; the console script `tfm`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Before the command begins, and after its end, Ctrl-C is to end the process. Python would print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main as run

    run()


if __name__ == "__main__":
    main()
