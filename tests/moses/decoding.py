"""Runs the real decoder."""

import subprocess


def decode(moses_root, folder, ini, sentences, *flags):
    """Run it in the folder of its ini; its lines."""
    done = subprocess.run(
        [moses_root / "bin" / "moses", "-f", ini, "-threads", "2", *flags],
        input="".join(sentence + "\n" for sentence in sentences), capture_output=True, text=True, cwd=folder, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split("\n")[:-1]
