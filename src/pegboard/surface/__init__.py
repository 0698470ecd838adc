"""What one conversation is shown of the tools, and why. No clock, no I/O: `now` is passed in."""
