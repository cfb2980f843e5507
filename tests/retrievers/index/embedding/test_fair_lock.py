"""Threads get a fair lock one at a time, in the order in which they asked."""

from __future__ import annotations

import threading
import time

from callsheet.retrievers.index.embedding.minilm import FairLock


def test_first_come_first_served() -> None:
    lock, order, inside = FairLock(), list[int](), 0

    def work(number: int) -> None:
        nonlocal inside
        with lock:
            inside += 1
            assert inside == 1
            order.append(number)
            inside -= 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    with lock:
        for waiting, thread in enumerate(threads, 1):
            thread.start()
            while len(lock._waiting) < waiting:
                time.sleep(0.001)
    for thread in threads:
        thread.join(10)
    assert order == [*range(20)]
    with lock:  # and it is free again
        pass


def test_it_is_released_by_an_error() -> None:
    lock = FairLock()
    for _ in range(2):
        try:
            with lock:
                raise RuntimeError
        except RuntimeError:
            pass
    assert not lock._held
