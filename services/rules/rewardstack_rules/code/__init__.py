"""Run the policy's program against tests, for the reward function `code`.

    runner (`runner`: tests, comparison, verdict) ─ launcher (`inside.launcher`, a warm interpreter) ─ candidate

A runner is an isolated process (package `isolation`); there is one per core. It starts a launcher, and passes to it
memory files: the program, the program's input, and an empty file for the output. For each test, the launcher forks a
confined process (package `confinement`). This process, the candidate, runs the program; it never gets the test's
expected output.

Tests that are programs themselves run in a second confined process, the tester (`inside.tester`), which calls the
candidate's functions over a socket that carries only plain values. Some rows of data sets have a checker (`checking`),
a program that decides whether an output is right. It runs in a process like the candidate's, and gets three files: the
input, the expected output and the candidate's output.

Programs in compiled languages (`languages`) are built once per sample (`building`): a separate launcher runs the
compiler, confined to a folder. Candidates then run the executable.

If SANDBOX_FUSION_URL is set, `fusion` replaces the launcher: for each process, SandboxFusion runs `inside.driver`,
which runs the program.

The package `inside` runs under the interpreter of CODE_PYTHON and needs only the standard library.
"""

RUNNER_VERSION = "4"
"""Version of the execution environment, a part of cache keys. Raise it when a change can alter a verdict."""
VARIABLES = (
    "CODE_PYTHON",
    "CODE_BOUNDARY",
    "CODE_TIMEOUT",
    "CODE_CXX",
    "SANDBOX_FUSION_URL",
    "REWARDSTACK_MAX_RETRIES",
)
"""Environment variables that runners read."""
PROXIES = tuple(f"{kind}_PROXY" for kind in ("HTTP", "HTTPS", "ALL", "NO"))
NETWORK = (*PROXIES, *map(str.lower, PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables that runners also read if they send requests to SandboxFusion."""
