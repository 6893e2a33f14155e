"""Loaded by Python when a simulated daemon starts itself again: puts the fault points in place once more."""

import os

from tools.simulator import faulty

faulty.install(os.environ["SIMULATOR_FAULTS"])
