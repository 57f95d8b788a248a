"""Fill the generated blocks of the README and the documentation with numbers from the records in results/.

    python studies/fill_blocks.py

The text between <!-- name --> and <!-- /name --> in a page is replaced by the output of the function `BLOCKS[name]`.
Values that have not been measured become dashes, and sentences about them are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from blocks import (
    attributes,
    cluster,
    comparison,
    concepts,
    goals,
    objective,
    operations,
    paper,
    parameters,
    peers,
    performance,
    readme,
    real_time,
    temporal_links,
    testing,
    views,
)
from blocks.records import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"<!-- (\w+) -->.*?<!-- /\1 -->", re.DOTALL)
BLOCKS: dict[str, Callable[[], str]] = {
    "attributes": attributes.attributes,
    "attribute_cost": attributes.cost,
    "attribute_constants": attributes.constants,
    "attribute_weight": attributes.weight,
    "concepts_arrival": concepts.arrival,
    "concepts_influence": concepts.influence,
    "concepts_anchor": concepts.anchor,
    "concepts_batch": concepts.batch,
    "in_numbers": readme.in_numbers,
    "first_run": performance.first_run,
    "quality": readme.quality,
    "stability": readme.stability,
    "real_time": readme.real_time,
    "speed": readme.speed,
    "sizes": operations.sizes,
    "crashes": operations.crashes,
    "durable": operations.durable,
    "service": operations.service,
    "soak": operations.soak,
    "tested": testing.tested,
    "verdicts": paper.verdicts,
    "data_sets": paper.data_sets,
    "index_order": paper.index_order,
    "influence": paper.influence,
    "components": paper.components,
    "readings": paper.readings,
    "best_reading": paper.best_reading,
    "epochs": paper.epochs,
    "order": paper.order,
    "f1_micro": partial(paper.f1, "micro"),
    "f1_macro": partial(paper.f1, "macro"),
    "as_good": paper.as_good,
    "clustering_nmi": partial(paper.clustering, "nmi"),
    "clustering_completeness": partial(paper.clustering, "completeness"),
    "most_nmi": paper.most_nmi,
    "seconds": paper.seconds,
    "seconds_by_share": paper.seconds_by_share,
    "local_action": paper.local_action,
    "in_short": comparison.in_short,
    "compared_micro": partial(comparison.compared, "micro"),
    "compared_macro": partial(comparison.compared, "macro"),
    "compared_nmi": partial(comparison.compared, "nmi"),
    "checkpoint": partial(comparison.checkpoint, "micro"),
    "ratios": comparison.ratios,
    "growth": comparison.growth,
    "links": comparison.links,
    "retraining": comparison.retraining,
    "snapshots": comparison.snapshots,
    "systems": comparison.systems,
    "systems_tuned": comparison.systems_tuned,
    "arrival_cost": comparison.arrival_cost,
    "retrained_systems": comparison.retrained_systems,
    "latency": comparison.latency,
    "goals": goals.goals,
    "ritz_goal": objective.ritz_goal,
    "ritz": objective.ritz,
    "losses": objective.losses,
    "lemma_2": objective.lemma_2,
    "deviations": objective.deviations,
    "relative": objective.relative,
    "degrees": objective.degrees,
    "premises": objective.premises,
    "embedder_parameters": parameters.describe,
    "by_dim": partial(parameters.sweep, "dimension k"),
    "by_growth": partial(parameters.sweep, "growth g"),
    "by_depth": partial(parameters.sweep, "depth D"),
    "peers_blog": partial(peers.peers, "Blog"),
    "peers_blog_setting": partial(peers.setting, "Blog"),
    "peers_communities": partial(peers.peers, "communities"),
    "peers_communities_setting": partial(peers.setting, "communities"),
    "peers_picture": peers.picture,
    "peers_versions": peers.versions,
    "roofline": performance.roofline,
    "large": performance.large,
    "anchor_at_scale": performance.anchor,
    "anchor_drift": performance.anchor_drift,
    "anchor_interval": performance.anchor_interval,
    "anchor_spread": performance.anchor_spread,
    "start_at_scale": performance.start,
    "mapped": performance.mapped,
    "half_precision": performance.half_precision,
    "ids": performance.ids,
    "ann": performance.ann,
    "worst": performance.worst,
    "goals_at_scale": performance.goals_at_scale,
    "real_time_goals": real_time.real_time_goals,
    "temporal_wiki": partial(temporal_links.results, "tgbl-wiki"),
    "temporal_collegemsg": partial(temporal_links.results, "collegemsg"),
    "temporal_experience": partial(temporal_links.experience, "tgbl-wiki"),
    "temporal_setting": temporal_links.setting,
    "views_chosen": views.choice,
    "views_changed": views.change,
    "arrival_gap": views.arrival_gap,
    "cluster": cluster.cluster,
    "cluster_goals": cluster.cluster_goals,
    "cluster_soak": operations.soak_on_shards,
    "cluster_model": cluster.cluster_model,
}


def fill_blocks(page: str) -> str:
    """Return the text of a page with all its blocks generated anew."""
    return BLOCK.sub(lambda match: f"<!-- {match[1]} -->\n\n{BLOCKS[match[1]]()}\n\n<!-- /{match[1]} -->", page)


if __name__ == "__main__":
    for path in PAGES:
        before = path.read_text()
        if (after := fill_blocks(before)) != before:
            path.write_text(after)
