"""Online learning with River: a classifier learns from the vectors of arriving vertices."""

# %% [markdown]
# # Online learning with River
#
# When this stream begins, there is no graph, there are no labels, and there is no
# trained model. Accounts arrive with their contacts. Each account belongs to one
# of six groups, and we want to predict its group immediately. For one account in
# ten, the true group becomes known, a hundred arrivals later. The model learns only
# from these labels. (An *arrival* is a new vertex with its edges.)
#
# [River](https://riverml.xyz) has models that learn from one example at a time.
# They need features, but a new vertex of a graph has none. Ripplevec provides them:
# `StreamEmbedder` is a River transformer that turns an arrival into a vector.
# Together they learn online from end to end. In a checkout of the repository,
# install it with `pip install '.[river]'`.

# %%
from collections import Counter, deque

import matplotlib.pyplot as plt
import numpy as np
from river import linear_model, metrics, optim, preprocessing

from ripplevec.integrations.river import StreamEmbedder
from ripplevec.lab.datasets.synthetic import growing_communities

GROUPS, DELAY = 6, 100
graph = growing_communities(
    4_000, communities=GROUPS, edges_per_vertex=4, noise=0.25, seed=0
)
contacts = [[] for _ in range(graph.vertices)]
for earlier, later in graph.edges.tolist():
    contacts[later].append(earlier)
arrivals = [
    {"vertex": vertex, "neighbors": others} for vertex, others in enumerate(contacts)
]
print(
    f"{graph.vertices:,} arrivals, {len(graph.edges):,} edges; a quarter of the edges are random"
)

# %% [markdown]
# ## Two learners
#
# Both learners use the same online classifier. The first gets the vector of the
# arrival. The second gets features that do not need an embedding: the number of
# contacts of the arrival, and the numbers of their contacts.

# %%


def degree_features(arrival, degree):
    """Return the number of contacts of an arrival, and the mean and maximum of their contacts."""
    theirs = [degree[other] for other in arrival["neighbors"]]
    return {
        "own": len(theirs),
        "mean": sum(theirs) / max(len(theirs), 1),
        "most": max(theirs, default=0),
    }


def create_learners():
    """Return a classifier for vectors and one for counts, which are scaled first."""
    vectors = linear_model.SoftmaxRegression(optim.SGD(0.1))
    counts = preprocessing.StandardScaler() | linear_model.SoftmaxRegression(
        optim.SGD(0.05)
    )
    return {"vectors": vectors, "degrees": counts}


# %% [markdown]
# ## The loop
#
# For each arrival, add it to the graph, ask both learners for a prediction, and
# store the features. When the label becomes known, learn from the stored features.
# This order is called *progressive validation*: every prediction is made before
# its label is seen, so the accuracy over the stream is a fair measure.
#
# For comparison, the **labeled contacts vote** on the group, which needs no
# learning. If no contact has a label yet, the vote is the most frequent label so
# far.

# %%


def run_stream(share_labeled):
    """Run the stream; return for each method which predictions were correct."""
    rng = np.random.default_rng(1)
    embedder, learners = StreamEmbedder(dim=16, seed=0), create_learners()
    degree, labels, seen, waiting = Counter(), {}, Counter(), deque()
    right = {"vectors": [], "degrees": [], "vote": []}
    for arrival in arrivals:
        vertex, truth = arrival["vertex"], int(graph.labels[arrival["vertex"]])
        embedder.learn_one(arrival)
        degree.update([vertex] * len(arrival["neighbors"]) + arrival["neighbors"])

        features = {
            "vectors": embedder.transform_one(arrival),
            "degrees": degree_features(arrival, degree),
        }
        for method, learner in learners.items():
            right[method].append(learner.predict_one(features[method]) == truth)
        votes = (
            Counter(labels[other] for other in arrival["neighbors"] if other in labels)
            or seen
        )
        right["vote"].append([label for label, _ in votes.most_common(1)] == [truth])

        if rng.random() < share_labeled:
            waiting.append((vertex, features, truth))
        while waiting and waiting[0][0] <= vertex - DELAY:
            known, features_then, label = waiting.popleft()
            labels[known] = label
            seen[label] += 1
            for method, learner in learners.items():
                learner.learn_one(features_then[method], label)
    return {method: np.array(answers) for method, answers in right.items()}


right = run_stream(share_labeled=0.1)
accuracy = {method: answers.mean() for method, answers in right.items()}
late = {method: answers[-1000:].mean() for method, answers in right.items()}
print("progressive accuracy      whole stream   last 1,000")
for method in right:
    print(f"  {method:24} {accuracy[method]:8.1%} {late[method]:11.1%}")

# %% drawing
palette = {"vectors": "#4269d0", "vote": "#efb118", "degrees": "#8a91a0"}
pieces = np.array_split(np.arange(graph.vertices), 40)
plt.figure()
for method, color in palette.items():
    along = [100 * right[method][piece].mean() for piece in pieces]
    plt.plot([piece.mean() for piece in pieces], along, color=color, label=method)
plt.axhline(100 / GROUPS, color="#8a91a0", linestyle=":", linewidth=1)
plt.title("Accuracy along the stream, with one label in ten")
plt.xlabel("arrivals")
plt.ylabel("% correct per hundred arrivals")
plt.ylim(0, 100)
plt.legend(loc="center right", bbox_to_anchor=(1, 0.68))

# %% [markdown]
# The first predictions are guesses: no label is known yet, and the embedding has
# its *start* (the initial embedding) only when 2 · `dim` vertices have edges. Soon
# after that, the vectors become useful.
#
# Degrees are no better than chance (dotted line). This is not a weakness of River:
# the six groups have the same structure, so counts cannot distinguish them. The
# group depends on *which* vertices an arrival is connected to, and this is what a
# vector describes.
#
# ## Do you need vectors?
#
# If almost all labels are known, a vote of the contacts is enough. If few labels
# are known, vectors help, because they are computed from the whole graph, labeled
# or not.

# %% drawing
shares = [0.01, 0.03, 0.1, 0.3, 1.0]
by_share = {share: run_stream(share) for share in shares}
plt.figure()
for method in ("vectors", "vote"):
    plt.plot(
        shares,
        [100 * by_share[share][method].mean() for share in shares],
        "o-",
        color=palette[method],
        label=method,
    )
plt.xscale("log")
plt.xticks(shares, [f"{share:.0%}" for share in shares])
plt.minorticks_off()
plt.title("With few labels, vectors work and a vote does not")
plt.xlabel("share of arrivals whose label becomes known")
plt.ylabel("% correct, whole stream")
plt.ylim(0, 100)
plt.legend(loc="lower right")
for share in (0.01, 1.0):
    whole = {method: answers.mean() for method, answers in by_share[share].items()}
    print(
        f"{share:4.0%} of labels known: vectors {whole['vectors']:.1%}, vote {whole['vote']:.1%}"
    )

# %% [markdown]
# ## The short version
#
# If labels are known immediately, a River pipeline does all of this.

# %%
pipeline = StreamEmbedder(dim=16, seed=0) | linear_model.SoftmaxRegression(
    optim.SGD(0.1)
)
score = metrics.Accuracy()
for arrival, label in zip(arrivals, graph.labels.tolist(), strict=True):
    score.update(label, pipeline.predict_one(arrival))
    pipeline.learn_one(arrival, label)
print(score)

# %% [markdown]
# ## Summary
#
# - You can begin with an empty model; `fit` is not necessary.
# - Store the features at the time of the prediction, and learn from them when the
#   label becomes known.
# - While the graph is small, its vectors still move a lot: let the classifier
#   continue to learn.

# %%
print(
    f"Beginning with an empty model and with one label in ten, the predicted\n"
    f"group is correct for {accuracy['vectors']:.0%} of the arrivals, and for {late['vectors']:.0%} of the last\n"
    f"thousand. It is correct for {accuracy['degrees']:.0%} with degrees instead of vectors, and for\n"
    f"{accuracy['vote']:.0%} with a vote of labeled contacts."
)
