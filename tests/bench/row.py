# SPDX-License-Identifier: Apache-2.0
"""One line of the benchmark's result."""


def row(name, value, unit, peer=None, peer_value=None, note=""):
    """A peer's value makes a ratio, unless @peer says that it is a published one."""
    measured = peer_value and "published" not in peer
    return {"name": name, "value": round(value, 3), "unit": unit, "peer": peer,
            "peer_value": None if peer_value is None else round(peer_value, 3),
            "ratio": round(value / peer_value, 3) if measured else None, "note": note}
