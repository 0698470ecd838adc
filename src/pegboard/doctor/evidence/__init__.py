"""What agents left on this machine of their sessions, read into facts. No text of any message is kept."""
