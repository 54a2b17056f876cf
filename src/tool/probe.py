# Asked of the image's Python before anything is offered to a model: its version, then the packages besides the
# standard library, each on a line.
import os, sys

names = set()
for path in sys.path:
    if path.endswith("-packages") and os.path.isdir(path):
        for name in os.listdir(path):
            name = name[:-3] if name.endswith(".py") else name.split(".")[0] if name.endswith(".so") else name
            if name.isidentifier() and name.isascii() and not name.startswith("_"):
                names.add(name)
print(sys.version.split()[0])
print(*sorted(names - {"pip", "setuptools", "wheel", "pkg_resources"}), sep="\n")
