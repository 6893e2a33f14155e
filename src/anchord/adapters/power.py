"""Whether this machine runs on its battery."""

from __future__ import annotations

import psutil


def on_battery() -> bool:
    """Return whether there is a battery and no mains; False where that cannot be known."""
    if not hasattr(psutil, "sensors_battery"):
        return False
    battery = psutil.sensors_battery()
    return battery is not None and battery.power_plugged is False
