from tests.analysis.test_results import work
from tests.commands import run

__all__ = ["work"]


def test_no_file_of_the_systems_is_replaced(work):
    systems = "--target", "fr", "--system", "baseline", "--system", "rnn", "--seed", "1"
    path = work / "decode" / "rnn.1.test.fr"
    before = path.read_bytes()
    done = run("analyse", "results", work, *systems, "-o", path, "--force", check=False)
    assert (done.returncode, path.read_bytes()) == (1, before)
    for _ in range(2):
        run("analyse", "results", work, *systems, "-o", work / "results.json", "--force")
