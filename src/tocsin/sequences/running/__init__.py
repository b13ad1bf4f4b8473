"""Running sequences: automata merged into one graph, their instances, and the indexes over both."""
