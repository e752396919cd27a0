"""``python -m moses_rnn`` is the command moses-rnn."""

import sys
from pathlib import Path

if __name__ == "__main__":
    from moses_rnn.cli.main import main

    sys.argv[0] = str(Path(sys.executable).with_name("moses-rnn"))
    main(prog_name="moses-rnn")
