"""Processes of all languages draw from one counter at the same time, and no number comes twice."""

import subprocess
import sys
from pathlib import Path

from randflake import init_tickets, list_tickets, show_tickets
from test_cross_language import CARGO, ROOT

PYTHON = """
import sys
from randflake import Tickets
with Tickets.leased(sys.argv[1], "orders", max_wait=60) as orders:
    numbers = [orders.generate() for _ in range(5000)] + orders.generate_many(5000)
print(*numbers, sep="\\n")
"""

NODE = """
const { Tickets } = require('./bindings-node')
async function main() {
  const orders = await Tickets.leased(process.argv[1], 'orders', { maxWaitMs: 60_000 })
  const numbers = Array.from({ length: 5000 }, () => orders.generate())
  numbers.push(...orders.generateMany(5000))
  await orders[Symbol.asyncDispose]()
  console.log(numbers.join('\\n'))
}
main()
"""

LANGUAGES = {
    "python": [sys.executable, "-c", PYTHON],
    "node": ["node", "--eval", NODE],
    "rust": [*CARGO, "--example", "tickets", "--"],
}


def test_processes_of_all_languages_draw_from_one_counter(tmp_path: Path) -> None:
    store = str(tmp_path / "ids.db")
    init_tickets(store, "new")
    everything: list[int] = []
    # First one after the other: what each gives back is there for the next.
    groups = [*([language] for language in LANGUAGES), [*LANGUAGES, *LANGUAGES]]
    for group in groups:
        commands = [[*LANGUAGES[language], store] for language in group]
        running = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            for command in commands
        ]
        for language, process in zip(group, running, strict=True):
            printed, _ = process.communicate()
            assert process.returncode == 0, language
            numbers = [int(line) for line in printed.split()]
            assert len(numbers) == 10_000, language
            assert numbers == sorted(numbers), language
            everything += numbers
    assert len(set(everything)) == len(everything) == 90_000
    counter = show_tickets(store, "orders")
    assert list_tickets(store) == [counter]
    assert counter is not None
    assert counter.next is not None
    # Each was handed out, or is back.
    assert counter.next - 1 - counter.given_back == 90_000
