"""Every tool that may be used now: named, filtered, gated, cached. No I/O of its own."""
