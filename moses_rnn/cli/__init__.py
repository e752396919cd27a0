"""The commands. --help is quick, because modules that need torch are imported inside the commands."""

import signal
import sys

# Before anything else is imported: until a command runs, Ctrl-C ends the program without a traceback. Not where another
# program imports the commands.
if (
    sys.argv[0].rpartition("/")[2].startswith("moses-rnn")
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
