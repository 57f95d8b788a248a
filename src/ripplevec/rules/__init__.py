"""How a touched vector moves: the paper's rule, our rule, and the global correction."""
