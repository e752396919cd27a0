"""Runs the real Moses, or puts a shell script in the place of one of Moses's programs."""

import subprocess

from moses_rnn.moses.decoding import Moses


def ran(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def decode(moses_root, folder, ini, sentences, *flags):
    """Run the decoder in the folder of its ini; its lines."""
    command = [moses_root / "bin" / "moses", "-f", ini, "-threads", "2", *flags]
    done = ran(*command, input="".join(sentence + "\n" for sentence in sentences), cwd=folder)
    return done.stdout.split("\n")[:-1]


def false_moses(folder, name, script):
    """A Moses of one program, which is a script."""
    path = folder / "bin" / name
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Moses(folder)
