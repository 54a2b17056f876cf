#!/usr/bin/env python3
"""What getting an image costs, beside skopeo + umoci and podman, and what running from the store costs.

The image: the root file system of `make rootfs`, and Debian's git, numpy and pip each as a layer on it, gzip as
registries have them: 150 MB of real files. It is served by Debian's docker-registry on loopback; each round, each
candidate in turn gets it, unpacked, into a place of its own in which nothing was, and the disk is quiet before. All of
them write to an ext4 that is made for this, in a file: what else has been deleted on a disk, and when, can make new
files ten times as dear. What is compared are medians of one session, as ratios.

Then `python -c pass` in a box, from the store and from the same directory with --rootfs, in turn.

Usage: scripts/bench-images.py [--rounds N] [--runs N] [--dir DIR] [--json FILE]      (as root; make bench-images)
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PACKAGES = ["git", "python3-numpy", "python3-pip"]
MAYFLY = os.path.abspath("build/mayfly")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
TYPE = "application/vnd.oci.image."


def quietly(*argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"bench-images: {' '.join(argv)}: {done.stdout[-500:]}")
    return done.stdout


# ------------------------------------------------------------------ the image


def layers(work):
    """Archives, uncompressed."""
    yield subprocess.Popen(["tar", "-C", "build/rootfs", "--sort=name", "-c", "."], stdout=subprocess.PIPE)
    quietly("apt-get", "-q", "-o", "APT::Sandbox::User=", "download", *PACKAGES, cwd=work)
    for package in PACKAGES:
        deb = next(f for f in os.listdir(work) if f.startswith(package + "_"))
        yield subprocess.Popen(["dpkg-deb", "--fsys-tarfile", os.path.join(work, deb)], stdout=subprocess.PIPE)


def put(layout, data, kind):
    digest = hashlib.sha256(data).hexdigest()
    with open(f"{layout}/blobs/sha256/{digest}", "wb") as f:
        f.write(data)
    return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data)}


def make_image(work):
    """An OCI layout; returns it and the bytes of its files, packed and not."""
    layout = os.path.join(work, "layout")
    os.makedirs(f"{layout}/blobs/sha256")
    parts, ids, size = [], [], 0
    for tar in layers(work):
        data = tar.stdout.read()
        if tar.wait():
            sys.exit("bench-images: the image's layers could not be made")
        size += len(data)
        ids.append("sha256:" + hashlib.sha256(data).hexdigest())
        parts.append(put(layout, gzip.compress(data, 6, mtime=0), TYPE + "layer.v1.tar+gzip"))
    arch = quietly("dpkg", "--print-architecture").strip()
    config = {"os": "linux", "architecture": arch, "rootfs": {"type": "layers", "diff_ids": ids}, "config": {}}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": put(layout, json.dumps(config).encode(), TYPE + "config.v1+json"),
        "layers": parts,
    }
    entry = put(layout, json.dumps(manifest).encode(), MANIFEST)
    entry["annotations"] = {"org.opencontainers.image.ref.name": "1"}
    for name, text in (
        ("index.json", {"schemaVersion": 2, "manifests": [entry]}),
        ("oci-layout", {"imageLayoutVersion": "1.0.0"}),
    ):
        with open(f"{layout}/{name}", "w", encoding="utf-8") as f:
            json.dump(text, f)
    return layout, sum(p["size"] for p in parts), size


def start_registry(work):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{s.getsockname()[1]}"
    config = os.path.join(work, "registry.json")  # of which YAML has more than enough
    with open(config, "w", encoding="utf-8") as f:
        json.dump(
            {
                "version": 0.1,
                "log": {"level": "error", "accesslog": {"disabled": True}},
                "storage": {"filesystem": {"rootdirectory": work + "/registry"}},
                "http": {"addr": host},
            },
            f,
        )
    program = shutil.which("docker-registry") or "build/registry/usr/bin/docker-registry"
    if not os.path.exists(program):
        quietly("tests/images/get-registry.sh", "build/registry")
    with open(work + "/registry.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen([program, "serve", config], stdout=log, stderr=log)
    for _ in range(200):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", int(host.split(":")[1]))) == 0:
                return server, host
        time.sleep(0.05)
    sys.exit("bench-images: docker-registry does not listen")


def make_disk(work):
    """Where it is mounted; the file takes what is written."""
    disk = work + "/disk"
    os.mkdir(disk)
    with open(disk + ".img", "wb") as f:
        f.truncate(8 << 30)
    quietly("mkfs.ext4", "-q", "-F", disk + ".img")
    quietly("mount", "-o", "loop", disk + ".img", disk)
    return disk


# ------------------------------------------------------------------ who gets it


def mayfly(image, place):
    return [[MAYFLY, "pull", "-q", "--plain-http", "--store", place + "/store", image]]


def skopeo(image, place):
    layout = f"{place}/layout:1"
    return [
        ["skopeo", "copy", "-q", "--insecure-policy", "--src-tls-verify=false", "docker://" + image, "oci:" + layout],
        ["umoci", "unpack", "--image", layout, place + "/bundle"],
    ]


def podman(driver):
    def commands(image, place):
        storage = ["--root", place + "/root", "--runroot", place + "/run", "--storage-driver", driver]
        return [["podman", *storage, "pull", "-q", "--tls-verify=false", image]]

    return commands


CANDIDATES = {
    "mayfly": (MAYFLY, mayfly),
    "skopeo + umoci": ("umoci", skopeo),
    "podman, overlay": ("podman", podman("overlay")),
    "podman, vfs": ("podman", podman("vfs")),
}


def remove(place):
    """What podman has mounted there, too."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounted = [line.split()[1] for line in f if line.split()[1].startswith(place + "/")]
    for path in reversed(mounted):
        subprocess.run(["umount", path], check=False)
    subprocess.run(["rm", "-rf", "--one-file-system", place], check=True)


def get(commands, image, where):
    """Seconds of the wall clock and of CPU; None and the last words where it does not work here."""
    place = tempfile.mkdtemp(dir=where)
    os.sync()
    cpu, start, words = 0.0, time.monotonic(), None
    for argv in commands(image, place):
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
            said = child.stderr.read().decode(errors="replace")
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        cpu += used.ru_utime + used.ru_stime
        if child.returncode:
            words = said.strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
            break
    took = time.monotonic() - start
    remove(place)
    return (None, words[0]) if words else (took, cpu)


def measure_pulls(image, where, rounds):
    times, faults = {}, {}
    for name, (program, _) in CANDIDATES.items():
        if shutil.which(program):
            times[name] = []
        else:
            faults[name] = "is not installed"
    for n in range(rounds + 1):
        for name in list(times):
            took, other = get(CANDIDATES[name][1], image, where)
            if took is None:
                faults[name] = other
                del times[name]
            elif n:  # the first is to warm up
                times[name].append((took, other))
    return times, faults


# ------------------------------------------------------------------ a run


def run_ms(*root):
    start = time.monotonic()
    subprocess.run([MAYFLY, "python", *root, "-c", "pass"], check=True)
    return (time.monotonic() - start) * 1e3


def measure_runs(image, where, runs):
    store = tempfile.mkdtemp(dir=where)
    quietly(MAYFLY, "pull", "-q", "--plain-http", "--store", store, image)
    facts = json.loads(quietly(MAYFLY, "inspect", "--store", store, image))[0]
    rows = {"image": ("--store", store, "--image", image), "rootfs": ("--rootfs", facts["unpacked"]["path"])}
    times = {name: [] for name in rows}
    for n in range(runs + 3):
        for name in rows if n % 2 else reversed(rows):
            took = run_ms(*rows[name])
            if n >= 3:
                times[name].append(took)
    remove(store)
    return times


# ------------------------------------------------------------------ what is printed


def report(result):
    mib = 1 << 20
    print(
        f"\nan image of {result['layers']} layers, {result['bytes'] / mib:.0f} MiB, packed "
        f"{result['packedBytes'] / mib:.0f}; {result['rounds']} rounds, medians\n"
    )
    print(f"| {'pull and unpack':18} | seconds | of mayfly's | CPU seconds |\n|---|---|---|---|")
    for name, row in result["pulls"].items():
        if "fault" in row:
            print(f"| {name:18} | {row['fault']} | | |")
        else:
            print(f"| {name:18} | {row['seconds']:.2f} | {row['ratio']:.2f} | {row['cpuSeconds']:.2f} |")
    r = result["runs"]
    print(
        f"\nmayfly python -c pass, {r['runs']} pairs: {r['imageMs']:.2f} ms from the store, {r['rootfsMs']:.2f} ms from "
        f"the same directory, the median of differences {r['differenceMs']:+.3f}; what else runs here taken out as far as "
        f"it can be, by the fastest tenth: {r['imageFastMs']:.2f} and {r['rootfsFastMs']:.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--dir", default="/tmp", help="where all is kept meanwhile, 3 GB")
    parser.add_argument("--json", help="write the figures to this file as well")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-images: wants to be root: umoci and podman unpack as root, and so is mayfly's store compared")
    work = tempfile.mkdtemp(prefix="mayfly-bench-", dir=args.dir)
    server = None
    try:
        layout, packed, size = make_image(work)
        server, host = start_registry(work)
        image = host + "/bench:1"
        quietly("skopeo", "copy", "-q", "--insecure-policy", "--dest-tls-verify=false", f"oci:{layout}:1", "docker://" + image)
        disk = make_disk(work)
        times, faults = measure_pulls(image, disk, args.rounds)
        runs = measure_runs(image, disk, args.runs)
    finally:
        if server:
            server.kill()
            server.wait()
        remove(work)
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in times.items()}
    result = {
        "layers": 1 + len(PACKAGES),
        "bytes": size,
        "packedBytes": packed,
        "rounds": args.rounds,
        "pulls": {
            name: {"seconds": m[0], "cpuSeconds": m[1], "ratio": m[0] / medians["mayfly"][0]} for name, m in medians.items()
        }
        | {name: {"fault": words} for name, words in faults.items()},
        "runs": {
            "runs": args.runs,
            "imageMs": statistics.median(runs["image"]),
            "rootfsMs": statistics.median(runs["rootfs"]),
            "imageFastMs": statistics.quantiles(runs["image"], n=10)[0],
            "rootfsFastMs": statistics.quantiles(runs["rootfs"], n=10)[0],
            "differenceMs": statistics.median(a - b for a, b in zip(runs["image"], runs["rootfs"])),
        },
    }
    report(result)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)


main()
