"""The research side: data sets, baselines, evaluation, the paper's objective and experiments.

The product never imports it at module level.
"""
