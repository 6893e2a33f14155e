"""Reading files of anchord's own that another program may have replaced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular_file(file: Path) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: It cannot be read. With EINVAL if it is no regular file: reading a named pipe would
            wait for ever, and a device may have no end.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is not a file", str(file))
        return stream.read()
