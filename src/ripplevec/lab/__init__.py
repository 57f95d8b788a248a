"""Research code: data sets, baselines, evaluation, the objective of the paper, and experiments.

The other packages import it only on demand, never at module level, except for the command line.
"""
