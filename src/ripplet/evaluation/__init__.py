"""What vectors are worth: classification, clustering, the stream protocols, stability."""

from __future__ import annotations

from ripplet.evaluation.classification import Classifier, Scores, classify
from ripplet.evaluation.clustering import Agreement, cluster
from ripplet.evaluation.protocols import StreamResult, arrival, current, stream
from ripplet.evaluation.stability import Ageing, AnchorWatch, ageing, anchor_cosines

__all__ = [
    "Ageing",
    "Agreement",
    "AnchorWatch",
    "Classifier",
    "Scores",
    "StreamResult",
    "ageing",
    "anchor_cosines",
    "arrival",
    "classify",
    "cluster",
    "current",
    "stream",
]
