"""Starts moses-rnn-score again and again as a process of its own without importing torch anew: forks of this one.

Reads one JSON list of arguments a line, answers with exit code and messages. No thread exists before a fork.
"""

import json
import os
import sys
import tempfile

from moses_rnn.cli.score import main
from moses_rnn.scoring import run  # noqa: F401, imported once for all


def child(arguments, messages):
    os.dup2(messages, 2)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    sys.argv = ["moses-rnn-score", *arguments]
    try:
        main(arguments)
    except SystemExit as leaving:
        sys.stderr.flush()
        os._exit(leaving.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(99)


for line in sys.stdin:
    with tempfile.TemporaryFile() as messages:
        pid = os.fork()
        if pid == 0:
            child(json.loads(line), messages.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        messages.seek(0)
        print(json.dumps([code, messages.read().decode("utf-8", "replace")]), flush=True)
