"""Whether this machine runs on its battery."""

from __future__ import annotations

import psutil


def on_battery() -> bool:
    """Return whether the machine has a battery and is not plugged in; False if that is unknown."""
    if not hasattr(psutil, "sensors_battery"):
        return False  # psutil has it on some platforms only.
    battery = psutil.sensors_battery()
    return battery is not None and battery.power_plugged is False
