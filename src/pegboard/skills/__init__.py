"""Folders of SKILL.md: what each is for, known at once; what it says, and its files, read when they are asked for."""
