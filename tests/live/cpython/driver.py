"""Runs modules of CPython's own test suite and says for each case what came of it.

The same file runs on both sides of the comparison, in the box and bare in the same rootfs, and
knows neither. Each line it prints is MODULE, CASE, OUTCOME and the first line of the reason,
apart by tabs; the case "*" is the module as a whole. What the tests print is kept to themselves.

Usage: driver.py SECONDS MODULE...        (SECONDS: what each module may take)
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

# Cases that are run on neither side. UDP-Lite: the box's filter refuses it, and the threads of these tests die of that in a
# way that takes regrtest's own stderr along, and with it the report on all others.
LEFT_OUT = {"test_socket": ["*UDPLITE*"]}
RESOURCES = "subprocess"  # what else regrtest offers needs a network, a display or many minutes


ERROR = re.compile(r"[\w.]+(Error|Exit|Expired|Exception)\b")


def in_words(text):
    """The line of a traceback that says what went wrong, without what differs every time."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if ERROR.match(line)), lines[-1] if lines else "")
    return re.sub(r"0x[0-9a-f]+|\d{3,}|tmp\w{8}", "#", last)[:200].replace("\t", " ")


def cases(path):
    """Yields (case, outcome, reason) from a report in JUnit's format."""
    for case in ElementTree.parse(path).iter("testcase"):
        name, outcome, reason = case.get("name"), "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, reason = "failed", in_words("".join(child.itertext()))
            elif child.tag == "skipped" and outcome == "passed":
                outcome, reason = "skipped", in_words("".join(child.itertext()))
        if name and name != "None":  # a class or module that did not come to its cases
            yield name, outcome, reason


def run(module, seconds):
    with tempfile.TemporaryDirectory() as place:
        report = os.path.join(place, "report.xml")
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(
                [sys.executable, "-m", "test", "-u", RESOURCES, "--junit-xml", report,
                 "--tempdir", place, *(f"--ignore={case}" for case in LEFT_OUT.get(module, ())),
                 module],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=place,
                start_new_session=True)
            try:
                status = child.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                status = None
            output.seek(0)
            said = output.read().decode(errors="replace")
        if status is None:
            yield "*", "timeout", ""
            return
        reported = os.path.exists(report)
        if reported:
            yield from cases(report)
        skipped = re.search(rf"^{re.escape(module)} skipped -- (.*)$", said, re.M)
        if status != 0:
            yield "*", "failed" if status > 0 else "killed", "" if reported else in_words(said)
        elif skipped:
            yield "*", "skipped", in_words(skipped[1])
        else:
            yield "*", "passed", ""


def main():
    # What a shell starts beside itself ignores it, and passes that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for module in sys.argv[2:]:
        for case, outcome, reason in run(module, float(sys.argv[1])):
            print(module, case, outcome, reason, sep="\t", flush=True)


main()
