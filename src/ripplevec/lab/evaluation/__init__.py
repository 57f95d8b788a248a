"""What vectors are worth: classification, clustering, link prediction, the stream protocols, stability, latency."""

from __future__ import annotations

from ripplevec.lab.evaluation.classification import Classifier, Scores, classify
from ripplevec.lab.evaluation.clustering import Agreement, cluster
from ripplevec.lab.evaluation.latency import Latency, latency
from ripplevec.lab.evaluation.link_prediction import LinkScores, link_prediction
from ripplevec.lab.evaluation.protocols import Checkpoints, StreamResult, arrival, checkpoint, current, stream
from ripplevec.lab.evaluation.stability import Ageing, AnchorWatch, ageing, anchor_cosines

__all__ = [
    "Ageing",
    "Agreement",
    "AnchorWatch",
    "Checkpoints",
    "Classifier",
    "Latency",
    "LinkScores",
    "Scores",
    "StreamResult",
    "ageing",
    "anchor_cosines",
    "arrival",
    "checkpoint",
    "classify",
    "cluster",
    "current",
    "latency",
    "link_prediction",
    "stream",
]
