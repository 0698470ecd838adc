"""The tools that Pegboard itself offers to a model, and the desk at which every tool is listed and called."""
