"""What agents left on this machine of their sessions, read into facts. No text of any message is kept.

gather            read_sessions: every agent, what is new only, then one `Session` for each session
├── claude        Claude Code: lines of a transcript; `claude_tools` says from which tools deferral is known
├── codex         Codex: lines of a rollout
├── databases     opencode and Kilo: rows of a database that is never written to
├── cline         Cline: one document
├── transcripts   reads files of lines from where the last reading ended
├── folders       files in folders, which may be closed
├── kept          what was read before, in a file: numbers and names
├── parts         what one file says of one session, and how parts become a session
└── lines, marks, names   bytes cut into lines; what was seen already; what may pass for a name
"""
