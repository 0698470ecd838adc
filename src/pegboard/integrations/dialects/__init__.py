"""How the model APIs say tool, call and result. Pure: no I/O, no SDK, so raw HTTP and a proxy can use them too."""
