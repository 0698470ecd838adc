"""The doctor: finds where agents pay for tool definitions in vain, fixes what a setting can fix, and proves it."""
