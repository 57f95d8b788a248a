"""Evaluation of vectors: classification, clustering, link prediction, streaming protocols, stability and latency."""

from __future__ import annotations

from ripplevec.lab.evaluation.label_metrics import Classifier, ClusterScores, Scores, classify, cluster
from ripplevec.lab.evaluation.link_prediction import LinkScores, score_link_prediction
from ripplevec.lab.evaluation.protocols import (
    CheckpointScores,
    Latency,
    StreamResult,
    measure_latency,
    score_at_checkpoints,
    score_at_end,
    score_on_arrival,
    stream,
)
from ripplevec.lab.evaluation.stability import AnchorObserver, ClassifierAging, measure_aging, measure_anchor_cosines

__all__ = [
    "AnchorObserver",
    "CheckpointScores",
    "Classifier",
    "ClassifierAging",
    "ClusterScores",
    "Latency",
    "LinkScores",
    "Scores",
    "StreamResult",
    "classify",
    "cluster",
    "measure_aging",
    "measure_anchor_cosines",
    "measure_latency",
    "score_at_checkpoints",
    "score_at_end",
    "score_link_prediction",
    "score_on_arrival",
    "stream",
]
