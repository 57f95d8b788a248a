"""What others already use, from and to a model: one file per library, imported only when it is asked for."""
