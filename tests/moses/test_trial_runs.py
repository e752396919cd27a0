"""Steps that are run, fail, are stopped."""

import sys
import time
from pathlib import Path

import pytest

from moses_rnn.errors import OutputError, Stopped
from moses_rnn.moses.trial_runs import LOG, StepRunner, locked
from moses_rnn.moses.trial_steps import SETTINGS_FILE, Step


def never():
    return False


def script(text):
    """A make that is a script of Python; sys.argv has the words."""
    return lambda words: [sys.executable, "-c", text, *words]


@pytest.fixture
def runner(tmp_path):
    """Makes runners in a folder of their own."""
    with locked(tmp_path / "work") as lock:
        yield lambda text, stop=never: StepRunner(script(text), lock, lambda: None, stop)


def step(folder, *needs):
    return Step(folder.name, folder, ("decode-rnn",), {"TUNER": "mira"}, needs, {"a": 1})


def test_what_a_step_prints_goes_to_its_log(runner, tmp_path):
    one = step(tmp_path / "one")
    for _ in range(2):
        assert runner("import sys; print(sys.argv[1:])").run(one) is None
    line = f"['--silent', 'decode-rnn', 'WORK={tmp_path}/one', 'TUNER=mira']\n"
    assert (tmp_path / "one" / LOG).read_text() == line * 2
    assert (tmp_path / "one" / SETTINGS_FILE).read_text() == '{\n  "a": 1\n}\n'


def test_what_fails_takes_only_what_needs_it_with_it(runner, tmp_path):
    failing = runner("import sys; print('\\n' * 20 + 'because'); sys.exit('bad' in sys.argv[3])")
    bad, needing, later, other = (tmp_path / name for name in ("bad", "needing", "later", "other"))
    text = failing.run(step(bad))
    assert text.startswith(f"bad: make ended with code 1; the whole log: {bad}/{LOG}\n")
    assert text.endswith("\nbecause")
    assert failing.run(step(needing, other, bad)) is None
    assert failing.run(step(later, needing)) is None
    assert failing.run(step(other)) is None
    assert failing.failures == {bad: "bad", needing: "bad", later: "bad"}
    assert not needing.exists()


def test_a_stop_ends_make_and_what_it_has_started(runner, tmp_path):
    """Both get one SIGINT, and are waited for."""
    text = (
        "import os, signal, sys, time\n"
        "def ended(*_): open(sys.argv[3].partition('=')[2] + '/' + name, 'a').write('x'); os._exit(1)\n"
        "name = 'child' if not os.fork() else 'parent'\n"
        "signal.signal(signal.SIGINT, ended)\n"
        "open(sys.argv[3].partition('=')[2] + '/ready.' + name, 'w').close()\n"
        "time.sleep(60)"
    )
    folder = tmp_path / "one"

    def both_wait():
        return all((folder / f"ready.{name}").exists() for name in ("child", "parent"))

    with pytest.raises(Stopped, match="the same command continues"):
        runner(text, both_wait).run(step(folder))
    assert (folder / "parent").read_text() == "x"
    for _ in range(1000):  # make waits for the parent alone
        if (folder / "child").exists() and (folder / "child").read_text():
            break
        time.sleep(0.01)
    assert (folder / "child").read_text() == "x"


def test_one_run_at_a_time(tmp_path):
    with locked(tmp_path), pytest.raises(OutputError, match="another run is at work there"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_lock_outlives_a_run_that_was_killed(tmp_path):
    """As long as what it had started is at work."""
    import os
    import signal
    import subprocess
    import time

    started = tmp_path / "started"
    program = (
        "from pathlib import Path; import sys\n"
        "from moses_rnn.moses.trial_runs import StepRunner, locked\n"
        "from moses_rnn.moses.trial_steps import Step\n"
        f"make = lambda words: ['sh', '-c', 'echo $$ > {started}; exec sleep 60']\n"
        f"with locked(Path({str(tmp_path / 'work')!r})) as lock:\n"
        f"    step = Step('s', Path({str(tmp_path / 'work' / 's')!r}), (), {{}}, (), {{}})\n"
        "    StepRunner(make, lock, lambda: None, lambda: False).run(step)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", program])
    while not started.exists() or not started.read_text():
        time.sleep(0.05)
    run.kill()
    run.wait()
    with (
        pytest.raises(OutputError, match="another run is at work there, or what it had started"),
        locked(tmp_path / "work"),
    ):
        pass
    os.kill(int(started.read_text()), signal.SIGKILL)
    for _ in range(200):
        try:
            with locked(tmp_path / "work"):
                return
        except OutputError:
            time.sleep(0.05)
    raise AssertionError("the lock was not let go")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file/work: cannot be written"), locked(Path(tmp_path / "file" / "work")):
        pass
