"""Running sequences: the merged graph of automata, their instances, and the indexes over both."""
