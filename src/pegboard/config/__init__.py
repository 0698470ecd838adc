"""What the user wrote down: read, merged, checked, and turned into one frozen `Config`."""
