"""What the exit codes of `onrecord` mean."""

DONE = 0
FAILED = 1  # with one line that says why
WRONG_USAGE = 2
REFUSED = 3
SOME_REJECTED = 4  # the other inputs went in
GATE_FAILED = 5
SKIPPED = 6  # what was to be checked isn't there, which is no pass
INTERRUPTED = 130
