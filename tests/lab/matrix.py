#!/usr/bin/env python3
"""The matrices that are checked in: one line a probe, its verdict, and of each control the word that is not "through".
What a host has not, or cannot switch off, stands once above them.

    matrix.py print LAB.json...               the text
    matrix.py ids MATRIX.txt                  the probes in it
    matrix.py compare MATRIX.txt LAB.json     what was found of the probes in LAB.json is as it is written
    matrix.py differs A.txt B.txt REASONS.txt each cell that differs has a line with its reason, and no line is idle
"""
import json
import sys

NOT_HAD = "# not to be had, or not to be switched off: "


def words_of(lab):
    """By probe, its verdict and its words; and the controls that say nothing"""
    not_had = sorted(c["name"] for c in lab["controls"] if not c["available"])
    found = {}
    for probe in lab["probes"]:
        words = {n: w for n, w in probe["matrix"].items() if w != "through" and n not in not_had}
        if probe["verdict"] == "untestable":
            words = {}
        found[probe["id"]] = {"verdict": probe["verdict"], **words}
    return found, not_had


def print_text(*paths):
    """Of one study, or of one that was made in parts"""
    found, not_had = {}, []
    for path in paths:
        with open(path) as file:
            lab = json.load(file)
        part, not_had = words_of(lab)
        found |= part
    where = {"kernel": "the user-mode kernel"}.get(lab["where"], "this machine")
    print(f"# mayfly lab: {where}, as {lab['as']}, cgroups {lab['cgroups']}; make lab-matrix makes it")
    print(NOT_HAD + " ".join(not_had))
    for probe, words in found.items():
        print(probe, words.pop("verdict"), *(f"{name}={word}" for name, word in words.items()))
    return 0


def read(path):
    found, not_had = {}, []
    with open(path) as file:
        for line in file:
            if line.startswith(NOT_HAD):
                not_had = line[len(NOT_HAD):].split()
            elif line.strip() and not line.startswith("#"):
                probe, verdict, *words = line.split()
                found[probe] = {"verdict": verdict, **dict(w.split("=") for w in words)}
    return found, not_had


def cells(a, b):
    """What differs of the probes that both have: (probe, control or "verdict", word in a, word in b)"""
    (a, a_not), (b, b_not) = a, b
    for name in sorted(set(a_not) ^ set(b_not)):
        yield ("*", name, "no" if name in a_not else "had", "no" if name in b_not else "had")
    for probe in a:
        names = sorted((a[probe].keys() | b.get(probe, {}).keys()) - set(a_not) - set(b_not))
        if probe in b and "untestable" in (a[probe]["verdict"], b[probe]["verdict"]):
            names = ["verdict"]
        for name in names if probe in b else []:
            words = a[probe].get(name, "through"), b[probe].get(name, "through")
            if words[0] != words[1]:
                yield (probe, name) + words


def ids(path):
    print(*read(path)[0])
    return 0


def compare(path, lab_path):
    with open(lab_path) as file:
        lab = json.load(file)
    written, found = read(path), words_of(lab)
    asked = {c["name"] for c in lab["controls"]} | {"verdict"}
    bad = [c for c in cells(written, found) if c[1] in asked]
    for probe, name, was, now in bad:
        print(f"{path}: {probe} {name}: it is written as {was}, and was found to be {now}")
    for probe in found[0].keys() - written[0].keys():
        print(f"{path}: {probe} is not in it")
    return 1 if bad or found[0].keys() - written[0].keys() else 0


def differs(path_a, path_b, path_reasons):
    reasons, used, bad = set(), set(), 0
    with open(path_reasons) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                *key, _why = line.split(None, 4)
                reasons.add(tuple(key))
    for cell in cells(read(path_a), read(path_b)):
        keys = [cell, cell[:1] + ("*", "*", "*"), ("*",) + cell[1:]]
        key = next((k for k in keys if k in reasons), None)
        if key is None:
            print("no reason is given why this differs:", *cell)
            bad = 1
        used.add(key)
    for key in reasons - used:
        print("nothing differs that this would explain:", *key)
        bad = 1
    return bad


if __name__ == "__main__":
    sys.exit({"print": print_text, "ids": ids, "compare": compare, "differs": differs}[sys.argv[1]](*sys.argv[2:]))
