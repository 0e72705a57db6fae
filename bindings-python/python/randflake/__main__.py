"""The command randflake."""

import signal
import sys

from randflake import _randflake


def main() -> int:
    """Runs the command with the arguments of this process, and returns its exit code."""
    if sys.stdout is None:
        # The next file that is opened gets its descriptor: perhaps the store.
        why = "standard output is closed; open it, if only to /dev/null"
        print(f"randflake: OUTPUT: {why}", file=sys.stderr)
        return 1
    # The command runs in one native call, during which Python's own handler would never run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _randflake.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
