"""The capability index: an intent in anyone's words in, ranked tools out. Offline, on a CPU, no I/O of its own."""
