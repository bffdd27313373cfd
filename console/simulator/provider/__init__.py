"""Where machines come from: pools shared with other tenants, and the control API that Halftide's `simulated` provider uses."""
