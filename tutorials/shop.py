"""A shop: suggestions that follow the purchases, judged by what people buy next."""

# %% [markdown]
# # A shop: suggestions that follow the purchases
#
# You run a shop. People buy things, new people come, new things are put on the
# shelves. After every purchase the next suggestion should know about it.
#
# Purchases are a graph: people on one side, things on the other, an edge per
# purchase. Embedded together, a person stands near the things that people like
# them buy, and a thing near the things that the same people buy.
#
# ## A shop with tastes
#
# We generate purchases, so that we know what can be known. There are twenty
# tastes. A thing belongs to one of them, and some things are simply popular. A
# person has a main taste and a second one, and one purchase in seven is a
# whim. Tastes do not change. Half of the people are there from the beginning,
# the others join on the way; so do some of the things.

# %%
import matplotlib.pyplot as plt
import numpy as np

import ripplevec

PEOPLE, THINGS, TASTES = 1_500, 500, 20


def shop(seed=0):
    """Purchases (person, thing) in order, the chances they had, the tastes of things."""
    rng = np.random.default_rng(seed)
    taste = rng.integers(TASTES, size=THINGS)
    popular = (rng.permutation(THINGS) + 1.0) ** -0.6
    of_taste = popular * (taste == np.arange(TASTES)[:, None])
    of_taste /= of_taste.sum(axis=1, keepdims=True)
    liking = np.zeros((PEOPLE, TASTES))
    for person in range(PEOPLE):
        liking[person, rng.choice(TASTES, 2, replace=False)] = 0.7, 0.3
    chance = 0.86 * liking @ of_taste + 0.14 * popular / popular.sum()
    joins = np.where(np.arange(PEOPLE) < PEOPLE // 2, 0, rng.random(PEOPLE))
    on_sale = np.where(rng.random(THINGS) < 0.15, rng.random(THINGS), 0)
    purchases = []
    for person in range(PEOPLE):
        things = rng.choice(THINGS, 3 + rng.poisson(9), replace=False, p=chance[person])
        times = joins[person] + (1 - joins[person]) * rng.random(len(things))
        purchases += [
            (time, person, thing)
            for time, thing in zip(times, things.tolist(), strict=True)
            if time > on_sale[thing]
        ]
    named = [(f"person {person}", f"thing {x}") for _, person, x in sorted(purchases)]
    return named, chance, taste


purchases, chance, taste = shop()
before = len(purchases) // 2
past, coming = purchases[:before], purchases[before:]
newcomers = {person for person, _ in coming} - {person for person, _ in past}
new_things = {thing for _, thing in coming} - {thing for _, thing in past}
print(f"{len(purchases):,} purchases, half of them past")
print(f"yet to come: {len(newcomers)} people and {len(new_things)} things")

# %% [markdown]
# ## Who is near a thing
#
# The model begins with the past. It is told nothing of tastes, and nothing of
# who is a person and who a thing: ids are just names, though it sees for
# itself that this is a [graph of two kinds](../howto/bipartite-directed.md).
# `nearest` finds both, so we keep the things.

# %%
model = ripplevec.Embedder(dim=64, seed=0).fit(past)


def similar(thing, count):
    """Item-to-item: the things nearest to a thing."""
    near = [other for other, _ in model.nearest(thing, k=200)]
    return [other for other in near if other.startswith("thing")][:count]


def taste_of(thing):
    """The number of the taste that a thing belongs to."""
    return taste[int(thing.split()[1])]


example = past[0][1]
nearby = ", ".join(str(taste_of(other)) for other in similar(example, 5))
print(f"{example} is of taste {taste_of(example)}, the five nearest to it of {nearby}")
sold = sorted({thing for _, thing in past})
pairs = [(thing, other) for thing in sold for other in similar(thing, 5)]
own_kind = np.mean([taste_of(thing) == taste_of(other) for thing, other in pairs])
print(f"of the five nearest to a thing, {own_kind:.0%} are of its taste")
print(f"by chance it would be {1 / TASTES:.0%}")

# %% [markdown]
# ## Suggest, then look what was bought
#
# Before every purchase we rank all things the person does not have yet, and
# look at which rank the thing stands that is bought next. *Hit rate*: how
# often it is among the first ten. *MRR*: the mean of 1 / rank.
#
# - **popularity**: what has sold most so far;
# - **not updated**: vectors of the start, as a nightly job leaves them all
#   day. Who has joined since gets popularity, and new things have no vector;
# - **user-to-item**: likeness of the person's vector and a thing's, both of
#   now;
# - **item-to-item**: likeness of what the person has bought and a thing, in
#   the mean.
#
# Likeness says what suits a person, not how much it sells, and both count. So
# all but the first are ranked by *likeness × sales*. We also look at likeness
# alone.

# %%


def ranks_of(likeness, sales, bought, thing):
    """The rank of what was bought, by likeness alone and with sales."""
    found = []
    for score in (likeness.copy(), np.maximum(likeness, 0) * sales):
        score[bought] = -np.inf
        ties = np.sum(score == score[thing]) - 1
        found.append(1 + np.sum(score > score[thing]) + ties / 2)
    return found


things = list(dict.fromkeys(thing for _, thing in past))
number = {thing: place for place, thing in enumerate(things)}
sales, basket = np.zeros(THINGS), {}
for person, thing in past:
    sales[number[thing]] += 1
    basket.setdefault(person, []).append(number[thing])

old_things = model.vectors(things)
old_people = {person: model[person] for person in basket}
ways = ("popularity", "not updated", "user-to-item", "item-to-item", "true tastes")
rows, bought_so_far = [], []

# %%
for person, thing in coming:
    if thing not in number:  # put on the shelf; without a buyer it has no place
        number[thing] = len(things)
        things.append(thing)
        model.add_vertex(thing)
    bought, target = basket.setdefault(person, []), number[thing]
    if bought:  # of a person who has never bought anything nothing is known
        vectors, sold = model.vectors(things), sales[: len(things)]
        stale = np.zeros(len(things))
        if person in old_people:
            stale[: len(old_things)] = old_things @ old_people[person]
        else:
            stale[:] = sold / sold.max()
        true = chance[int(person.split()[1]), [int(name.split()[1]) for name in things]]
        by_person, by_basket = (
            vectors @ model[person],
            vectors @ vectors[bought].mean(0),
        )
        likeness = (sold, stale, by_person, by_basket, true)
        rows.append([ranks_of(like, sold, bought, target) for like in likeness])
        bought_so_far.append(len(bought))
    model.add_edges([(person, thing)])  # the purchase: the next suggestion knows of it
    sales[target] += 1
    bought.append(target)

alone, with_sales = np.moveaxis(np.array(rows), 2, 0)
best = np.where(
    [way in ("popularity", "true tastes") for way in ways], alone, with_sales
)
hits, mrr = np.mean(best <= 10, axis=0), np.mean(1 / best, axis=0)
print(f"{len(best):,} purchases judged      hit rate@10    MRR")
for way, hit, reciprocal in zip(ways, hits, mrr, strict=True):
    print(f"  {way:24} {hit:8.1%} {reciprocal:9.3f}")

# %% [markdown]
# *True tastes* ranks by the chances that the purchases were drawn from. No
# method can do better in the long run: this, and not 100 %, is the ceiling, as
# people are not that predictable.

# %% drawing
pieces = np.array_split(np.arange(len(best)), 8)
looks = {
    "popularity": "#8a91a0",
    "not updated": "#efb118",
    "user-to-item": "#4269d0",
    "item-to-item": "#3ca951",
}
plt.figure()
for way, color in looks.items():
    hit = best[:, ways.index(way)] <= 10
    along = [100 * hit[piece].mean() for piece in pieces]
    plt.plot([piece.mean() for piece in pieces], along, "o-", color=color, label=way)
plt.title("Suggestions that follow the stream keep up, old vectors do not")
plt.xlabel("purchases since the start")
plt.ylabel("hit rate@10 in %")
plt.ylim(0, 48)
plt.legend(ncol=4, loc="upper center", columnspacing=1.2)

# %% [markdown]
# ## Newcomers
#
# A person is known a little better with every purchase. One is enough to do
# better than popularity.

# %%
counts = np.array(bought_so_far)
after_one = {way: np.mean(best[counts == 1, ways.index(way)] <= 10) for way in ways}
print(
    f"after one purchase: item-to-item {after_one['item-to-item']:.1%}, popularity {after_one['popularity']:.1%}"
)

# %% drawing
steps = [(1, 1), (2, 2), (3, 4), (5, 7), (8, 12)]
plt.figure()
for way in ("item-to-item", "user-to-item", "popularity"):
    hit = best[:, ways.index(way)] <= 10
    along = [
        100 * hit[(counts >= low) & (counts <= high)].mean() for low, high in steps
    ]
    plt.plot(range(len(steps)), along, "o-", color=looks[way], label=way)
plt.xticks(
    range(len(steps)),
    [str(low) if low == high else f"{low}–{high}" for low, high in steps],
)
plt.title("From the first purchase on")
plt.xlabel("purchases of the person so far")
plt.ylabel("hit rate@10 in %")
plt.ylim(0)
plt.legend(loc="center right", bbox_to_anchor=(1, 0.42))

# %% [markdown]
# ## What does not work
#
# **Likeness alone.** A vector has a direction, and the direction says which
# taste. How well a thing sells is not in it. Ranked by cosine alone the
# suggestions are right in kind and too often too rare.

# %%
hits_alone = np.mean(alone <= 10, axis=0)
for way in ("user-to-item", "item-to-item"):
    place = ways.index(way)
    print(f"{way}, hit rate@10 by likeness alone: {hits_alone[place]:.1%}")
    print(f"{way}, with sales:                    {hits[place]:.1%}")

# %% [markdown]
# **Things that nobody has bought.** A thing without an edge has no place. It
# needs a first buyer, or another signal.
#
# **Tastes that change.** Here they do not. Where they do, old purchases should
# count less than new ones: `half_life` [makes it so](../time.md).
#
# ## What to take with you
#
# - People and things are vertices like any other.
# - Keep the count of sales beside the vectors, and use both.
# - A person's own vector and the mean of what they have bought are about
#   equally good guides.

# %%
print(
    f"The next purchase is among ten suggestions in {hits[3]:.0%} of the cases\n"
    f"(item-to-item) or {hits[2]:.0%} (user-to-item), against {hits[1]:.0%} with vectors\n"
    f"that are not updated and {hits[0]:.0%} by popularity; {hits[4]:.0%} is the most\n"
    f"that can be."
)
