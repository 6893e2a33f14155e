"""What this machine offers: its limits, battery and heap."""
