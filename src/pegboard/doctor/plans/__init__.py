"""Makes plans from findings, applies them and takes them back to the byte. Nothing is written before a person says so.

`make` says what a fix comes to, `edits` changes texts, `actions` is what is remembered; `journal`, `recovery` and
`ledger` own the disk; `delegate` hands installs of the gateway and the proxy to those who know them.
Above: the commands and the report. Below: the editors of the installers, and files that are replaced whole.
"""
