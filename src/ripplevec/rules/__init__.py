"""Update rules: how vectors move with the graph (rules `ripple` and `paper`), and the global correction (anchor)."""
