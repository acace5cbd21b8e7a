"""Cuts the power under a store, again and again, and checks that nothing acknowledged is lost.

By hand, as root, on Linux:

    cargo build -p sillage-store
    python3 sillage-store/tests/power-cut.py target/debug/sillage-store-child ROUNDS [aged]

An ext4 file system on a loop device is shut down without flushing (EXT4_IOC_SHUTDOWN), which drops all that was not
synced, while four runs append. It is then mounted again and every run is read. `aged` keeps the store from round to
round. What a drive does with its own cache is not modelled. A store without its fdatasync fails every round.
"""

import fcntl
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2


def acknowledged(output):
    last = {}
    for line in output.split(b"\n")[:-1]:
        words = line.split()
        if len(words) == 2 and words[0].startswith(b"run-"):
            last[words[0].decode()] = int(words[1])
    return last


def cut(child, image, mount, known):
    """One round. Tells whether all that was ever acknowledged is there."""
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    store = os.path.join(mount, "store")
    writer = subprocess.Popen(
        [child, "append", store, "4", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    time.sleep(random.uniform(0.05, 0.8))
    folder = os.open(mount, os.O_RDONLY)
    fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(folder)
    time.sleep(0.02)
    writer.kill()
    for run, last in acknowledged(writer.communicate()[0]).items():
        known[run] = max(last, known.get(run, 0))
    subprocess.run(["umount", mount], check=True)

    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    reader = subprocess.run([child, "read", store, *known], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    usage = os.statvfs(mount)
    subprocess.run(["umount", mount], check=True)
    found = acknowledged(reader.stdout)
    whole = reader.returncode == 0 and all(found.get(run, 0) >= last for run, last in known.items())
    if not whole:
        print("lost:", known, reader.stdout[:500])
    known.update(found)
    return whole, usage.f_bavail / usage.f_blocks < 0.2


def main():
    child, rounds, aged = sys.argv[1], int(sys.argv[2]), "aged" in sys.argv[3:]
    bad = 0
    with tempfile.TemporaryDirectory() as home:
        image, mount = os.path.join(home, "image"), os.path.join(home, "mount")
        os.mkdir(mount)
        with open(image, "wb") as file:
            file.truncate(400 << 20)
        known, full = {}, True
        for _ in range(rounds):
            if full or not aged:
                subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
                known = {}
            whole, full = cut(child, image, mount, known)
            bad += not whole
    print(f"{rounds} cuts, {bad} with losses")
    sys.exit(bool(bad))


main()
