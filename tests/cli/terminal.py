# SPDX-License-Identifier: Apache-2.0
"""What a child writes to a pseudo-terminal, whole."""

import os
import threading

END = b"\0ended\0"


def drain(own, terminal, child):
    """
    All that @child writes to @terminal, read at its other side @own; both are closed afterwards. A terminal that
    nobody has open any more may say EIO to its reader before it has handed over the last bytes, a few times in
    100,000 on a busy machine: so it stays open here, and the end is a byte that is written when the child has ended.
    """
    def end():
        child.wait()
        os.write(terminal, END)

    thread = threading.Thread(target=end)
    thread.start()
    said = b""
    while not said.endswith(END):
        said += os.read(own, 65536)
    thread.join()
    os.close(terminal)
    os.close(own)
    return said[:-len(END)]
