"""What agents are set to, with the precedence they really have. Read, never written."""
