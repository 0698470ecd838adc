"""Bytes that outlive the process."""
