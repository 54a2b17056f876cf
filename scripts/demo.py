"""What `make run` runs: a small program that also looks at the box it is in."""

import os
import pathlib
import socket


def primes(limit):
    sieve = bytearray([1]) * limit
    for n in range(2, int(limit**0.5) + 1):
        sieve[n * n :: n] = bytes(len(sieve[n * n :: n]))
    return [n for n in range(2, limit) if sieve[n]]


def attempt(what, action):
    try:
        action()
        print(f"{what}: possible")
    except OSError as error:
        print(f"{what}: {error.strerror}")


print(f"the last of the primes below a million: {primes(1_000_000)[-1]}")
processes = sum(entry.name.isdigit() for entry in pathlib.Path("/proc").iterdir())
print(f"I am user {os.getuid()}, and see {processes} processes")
attempt("writing to /usr", lambda: open("/usr/mine", "w"))
attempt("writing to /tmp", lambda: open("/tmp/mine", "w"))
attempt("connecting to 192.0.2.1", lambda: socket.create_connection(("192.0.2.1", 80), timeout=2))
