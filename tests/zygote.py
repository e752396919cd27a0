"""Starts the commands again and again, each as a process of its own, without importing torch anew: forks of this one.

Reads requests from a descriptor, a line of JSON each, and answers with exit codes. It has no threads that a fork would
lack. A child ends without taking down the interpreter, which would take many times as long as most commands. What
closed, broken and full streams do is tested with the programs themselves (tests/cli/test_standard_streams.py).
"""

import gc
import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

MODES = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)


def import_all():
    import moses_rnn

    for module in pkgutil.walk_packages(moses_rnn.__path__, "moses_rnn."):
        if module.name != "moses_rnn._native":  # the native core has the suffix of a module and is none
            importlib.import_module(module.name)


def answer(requests, answers):
    """Start a child for each request; returns in the children alone, with what they shall be."""
    for line in requests:
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            os.close(requests.fileno())
            os.close(answers.fileno())
            return request
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=answers, flush=True)
    os._exit(0)


import_all()
gc.freeze()  # a fork that collects garbage would copy all of it
wanted = answer(os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w"))
for number, (path, mode) in enumerate(zip(wanted["streams"], MODES, strict=True)):
    os.dup2(os.open(path, mode), number)
os.chdir(wanted["folder"])
os.environ.clear()
os.environ.update(wanted["environment"])
sys.argv = wanted["command"]
name = Path(sys.argv[0]).name.removeprefix("moses-rnn-")
try:
    importlib.import_module(f"moses_rnn.cli.{'main' if name == 'moses-rnn' else name}").main()
except SystemExit as leaving:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(leaving.code or 0)
