"""Run the policy's program against tests, for the reward function `code`.

    runner (module `runner`) ── launcher (module `inside.launcher`) ── candidate, the process that runs the program

A runner is an isolated process (package `isolation`) that reads the tests, compares outputs and decides the verdict; by
default, there is one per core. It starts a launcher, and passes it memory files (memfd_create(2)): the program, the
program's input, and an empty file for the output. For each test, the launcher forks a candidate, a confined process
(package `confinement`) that runs the program. A candidate never gets the test's expected output.

Tests that are programs themselves run in a second confined process, the tester (`inside.tester`), which calls the
candidate's functions over a socket that carries only plain values. Some data sets have checkers (`checking`): programs
that decide whether an output is right. A checker runs in a process like the candidate's, and gets three files: the
input, the expected output and the candidate's output.

Programs in compiled languages (`languages`) are built once per sample (`building`): a separate launcher runs the
compiler, confined to a folder. Candidates then run the executable.

If SANDBOX_FUSION_URL is set, `fusion` replaces the launcher: for each process that a launcher would fork, a
SandboxFusion server runs `inside.driver`, which runs the program.

The package `inside` needs only the standard library, because CODE_PYTHON or SandboxFusion decides which interpreter
runs it.
"""

RUNNER_VERSION = "5"
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
