"""What happened, as frozen events."""
