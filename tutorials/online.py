"""Online learning with River: vectors of arriving vertices feed a classifier that learns as labels come."""

# %% [markdown]
# # Online learning with River
#
# Nothing is known when the stream begins: no graph, no labels, no model.
# Accounts arrive with their contacts. Each belongs to one of six groups, and
# we want to say which, at once. For one account in ten somebody looks it up,
# and the answer comes a hundred arrivals later. We learn from that, and from
# nothing else.
#
# [River](https://riverml.xyz) has models that learn from one example at a
# time, but they want features, and a new vertex of a graph has none. Ripplevec
# makes them: `StreamEmbedder` is a River transformer that turns an arrival
# into a vector. Together they learn online from end to end. It comes with
# `pip install 'ripplevec[river]'`.

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
    f"{graph.vertices:,} arrivals, {len(graph.edges):,} edges; a quarter of the edges go to anywhere"
)

# %% [markdown]
# ## Two learners
#
# Both end in the same online classifier. One sees the vector of the arrival.
# The other sees what can be had without an embedding: how many contacts it
# has, and how many they have.

# %%


def degrees_of(arrival, degree):
    """The number of contacts of an arrival, and of its contacts."""
    theirs = [degree[other] for other in arrival["neighbors"]]
    return {
        "own": len(theirs),
        "mean": sum(theirs) / max(len(theirs), 1),
        "most": max(theirs, default=0),
    }


def two_learners():
    """A classifier for vectors, which have length one, and one for counts, which River scales first."""
    vectors = linear_model.SoftmaxRegression(optim.SGD(0.1))
    counts = preprocessing.StandardScaler() | linear_model.SoftmaxRegression(
        optim.SGD(0.05)
    )
    return {"vectors": vectors, "degrees": counts}


# %% [markdown]
# ## The loop
#
# Per arrival: let it into the graph, ask both learners, and put the question
# aside; when its label comes, learn from the features as they were then. That
# order is *progressive validation*: every answer is given before its label is
# seen, so the accuracy of the stream is an honest one.
#
# For comparison we also let the **labeled contacts vote**. That needs no
# learning at all. Where no contact has a label yet, the most frequent one of
# all is said.

# %%


def play(share_labeled):
    """Run the stream; which answers were right, by way."""
    rng = np.random.default_rng(1)
    embedder, learners = StreamEmbedder(dim=16, seed=0), two_learners()
    degree, labels, seen, waiting = Counter(), {}, Counter(), deque()
    right = {"vectors": [], "degrees": [], "vote": []}
    for arrival in arrivals:
        vertex, truth = arrival["vertex"], int(graph.labels[arrival["vertex"]])
        embedder.learn_one(arrival)
        degree.update([vertex] * len(arrival["neighbors"]) + arrival["neighbors"])

        features = {
            "vectors": embedder.transform_one(arrival),
            "degrees": degrees_of(arrival, degree),
        }
        for way, learner in learners.items():
            right[way].append(learner.predict_one(features[way]) == truth)
        votes = (
            Counter(labels[other] for other in arrival["neighbors"] if other in labels)
            or seen
        )
        right["vote"].append([label for label, _ in votes.most_common(1)] == [truth])

        if rng.random() < share_labeled:
            waiting.append((vertex, features, truth))
        while waiting and waiting[0][0] <= vertex - DELAY:
            known, was, label = waiting.popleft()
            labels[known] = label
            seen[label] += 1
            for way, learner in learners.items():
                learner.learn_one(was[way], label)
    return {way: np.array(answers) for way, answers in right.items()}


right = play(share_labeled=0.1)
accuracy = {way: answers.mean() for way, answers in right.items()}
late = {way: answers[-1000:].mean() for way, answers in right.items()}
print("progressive accuracy      whole stream   last 1,000")
for way in right:
    print(f"  {way:24} {accuracy[way]:8.1%} {late[way]:11.1%}")

# %% drawing
looks = {"vectors": "#4269d0", "vote": "#efb118", "degrees": "#8a91a0"}
pieces = np.array_split(np.arange(graph.vertices), 40)
plt.figure()
for way, color in looks.items():
    along = [100 * right[way][piece].mean() for piece in pieces]
    plt.plot([piece.mean() for piece in pieces], along, color=color, label=way)
plt.axhline(100 / GROUPS, color="#8a91a0", linestyle=":", linewidth=1)
plt.title("From nothing: accuracy along the stream, one label in ten")
plt.xlabel("arrivals")
plt.ylabel("% right, of the last hundred")
plt.ylim(0, 100)
plt.legend(loc="center right", bbox_to_anchor=(1, 0.68))

# %% [markdown]
# The first arrivals are answered blindly: there is no label yet, and the
# embedding has its start only when 2 · `dim` vertices are there. Soon after,
# the vectors carry.
#
# Degrees are at chance (dotted). That is no fault of River: the six groups are
# built alike, so counts cannot tell them apart. *Which* vertices an arrival
# knows is what counts, and that is what a vector says.
#
# ## Do you need it?
#
# If nearly everybody's label is known, let the contacts vote and be done. With
# few labels it helps that a vector is made from the whole graph, labeled or
# not.

# %% drawing
shares = [0.01, 0.03, 0.1, 0.3, 1.0]
by_share = {share: play(share) for share in shares}
plt.figure()
for way in ("vectors", "vote"):
    plt.plot(
        shares,
        [100 * by_share[share][way].mean() for share in shares],
        "o-",
        color=looks[way],
        label=way,
    )
plt.xscale("log")
plt.xticks(shares, [f"{share:.0%}" for share in shares])
plt.minorticks_off()
plt.title("With few labels the vectors carry, a vote does not")
plt.xlabel("share of the arrivals whose label becomes known")
plt.ylabel("% right, whole stream")
plt.ylim(0, 100)
plt.legend(loc="lower right")
for share in (0.01, 1.0):
    whole = {way: answers.mean() for way, answers in by_share[share].items()}
    print(
        f"labels of {share:4.0%}: vectors {whole['vectors']:.1%}, vote {whole['vote']:.1%}"
    )

# %% [markdown]
# ## The short way
#
# Where the label comes at once, a pipeline does all of it; this is River as
# River users know it.

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
# ## What to take with you
#
# - An empty model is a fine beginning; `fit` is not needed.
# - Keep the features of the moment you answered, and learn from those when the
#   label comes.
# - While the graph is small its vectors still move much: let the classifier go
#   on learning.

# %%
print(
    f"Beginning with nothing, and with one label in ten, the group of an\n"
    f"arrival is right in {accuracy['vectors']:.0%} of the cases, {late['vectors']:.0%} of the last\n"
    f"thousand. With degrees for vectors it is {accuracy['degrees']:.0%}, with a vote of\n"
    f"labeled contacts {accuracy['vote']:.0%}."
)
