"""What local models share: weights, forward passes, devices."""
