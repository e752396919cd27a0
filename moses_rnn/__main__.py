"""``python -m moses_rnn`` is the command moses-rnn."""

import sys

if __name__ == "__main__":
    sys.argv[0] = f"{sys.executable.rpartition('/')[0]}/moses-rnn"

    from moses_rnn.cli.main import main

    main(prog_name="moses-rnn")
