"""What backends behind HTTP share: requests, limits, faults, redaction."""
