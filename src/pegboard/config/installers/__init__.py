"""Puts Pegboard into the settings of other programs and takes it out again. Nothing here touches the disk.

`clients` says where programs keep their servers, `edit_json` and `edit_toml` change such files as text, `plan` says
what an install comes to, `undo` what taking it back comes to, `journal` what is remembered between the two.
Above: `store.installs`, which writes. Below: the importers, which know the formats.
"""
