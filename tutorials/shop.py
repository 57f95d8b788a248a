"""Recommendations in a shop that follow the purchases, evaluated by the next purchase."""

# %% [markdown]
# # A shop: recommendations that follow the purchases
#
# You run a shop. Customers buy products, new customers arrive, and new products
# are offered. After every purchase, the next recommendation should take it into
# account.
#
# Purchases form a graph: customers on one side, products on the other, and an edge
# per purchase. In a common embedding, a customer is close to the products that
# similar customers buy, and a product is close to the products that the same
# customers buy.
#
# ## A shop with tastes
#
# We generate the purchases, so that the best possible result is known. There are
# twenty tastes. Each product belongs to one of them, and some products are more
# popular than others. Each customer has a main taste and a second one, and one
# purchase in seven is random. Tastes do not change. Half of the customers exist
# from the beginning and the others join later; some products are added later, too.

# %%
import matplotlib.pyplot as plt
import numpy as np

import ripplevec

CUSTOMERS, PRODUCTS, TASTES = 1_500, 500, 20


def generate_purchases(seed=0):
    """Return the purchases in order, their probabilities, and the tastes of products."""
    rng = np.random.default_rng(seed)
    taste = rng.integers(TASTES, size=PRODUCTS)
    popular = (rng.permutation(PRODUCTS) + 1.0) ** -0.6
    popular_by_taste = popular * (taste == np.arange(TASTES)[:, None])
    popular_by_taste /= popular_by_taste.sum(axis=1, keepdims=True)
    preference = np.zeros((CUSTOMERS, TASTES))
    for customer in range(CUSTOMERS):
        preference[customer, rng.choice(TASTES, 2, replace=False)] = 0.7, 0.3
    probability = 0.86 * preference @ popular_by_taste + 0.14 * popular / popular.sum()
    joins = np.where(np.arange(CUSTOMERS) < CUSTOMERS // 2, 0, rng.random(CUSTOMERS))
    on_sale = np.where(rng.random(PRODUCTS) < 0.15, rng.random(PRODUCTS), 0)
    purchases = []
    for customer in range(CUSTOMERS):
        products = rng.choice(
            PRODUCTS, 3 + rng.poisson(9), replace=False, p=probability[customer]
        )
        times = joins[customer] + (1 - joins[customer]) * rng.random(len(products))
        purchases += [
            (time, customer, product)
            for time, product in zip(times, products.tolist(), strict=True)
            if time > on_sale[product]
        ]
    named = [
        (f"customer {customer}", f"product {x}") for _, customer, x in sorted(purchases)
    ]
    return named, probability, taste


purchases, probability, taste = generate_purchases()
before = len(purchases) // 2
past, coming = purchases[:before], purchases[before:]
new_customers = {customer for customer, _ in coming} - {
    customer for customer, _ in past
}
new_products = {product for _, product in coming} - {product for _, product in past}
print(f"{len(purchases):,} purchases, half of them in the past")
print(f"new later: {len(new_customers)} customers and {len(new_products)} products")

# %% [markdown]
# ## Similar products
#
# The model begins with the past purchases. It knows neither the tastes nor which
# ids are customers and which are products. It does detect that the graph is
# [bipartite](../howto/bipartite-directed.md). `nearest` returns vertices of both
# kinds, so we keep only the products.

# %%
model = ripplevec.Embedder(dim=64, seed=0).fit(past)


def similar_products(product, count):
    """Return the products nearest to a product."""
    near = [other for other, _ in model.nearest(product, k=200)]
    return [other for other in near if other.startswith("product")][:count]


def taste_of(product):
    """Return the taste of a product."""
    return taste[int(product.split()[1])]


example = past[0][1]
nearby = ", ".join(str(taste_of(other)) for other in similar_products(example, 5))
print(f"taste of {example}: {taste_of(example)}; of the five nearest: {nearby}")
sold = sorted({product for _, product in past})
pairs = [(product, other) for product in sold for other in similar_products(product, 5)]
own_kind = np.mean([taste_of(product) == taste_of(other) for product, other in pairs])
print(f"of the five nearest to a product, {own_kind:.0%} have its taste")
print(f"at random it would be {1 / TASTES:.0%}")

# %% [markdown]
# ## Recommend, then compare with the purchase
#
# Before every purchase, rank all products that the customer does not have yet, and
# determine the rank of the product that is bought next. *Hit rate* is how often
# this product is among the first ten. *MRR* is the mean of 1 / rank.
#
# - **popularity**: the products that have sold most so far.
# - **not updated**: the vectors of the *start* (the initial embedding), which a
#   nightly job would use all day. Customers who joined later get the popular
#   products, and new products have no vector.
# - **user-to-item**: the similarity of the current vectors of the customer and of a
#   product.
# - **item-to-item**: the mean similarity of a product to the products that the
#   customer has bought.
# - **true tastes**: the probabilities that generated the purchases.
#
# Similarity tells what suits a customer, but not how well a product sells, and both
# matter. All methods except popularity and true tastes therefore rank by
# *similarity × sales*. The section [What does not work](#what-does-not-work)
# evaluates similarity alone.

# %%


def rank_of_purchase(similarity, sales, bought, product):
    """Return the rank of the bought product, by similarity alone and with sales."""
    found = []
    for score in (similarity.copy(), np.maximum(similarity, 0) * sales):
        score[bought] = -np.inf
        ties = np.sum(score == score[product]) - 1
        found.append(1 + np.sum(score > score[product]) + ties / 2)
    return found


products = list(dict.fromkeys(product for _, product in past))
number = {product: row for row, product in enumerate(products)}
sales, baskets = np.zeros(PRODUCTS), {}
for customer, product in past:
    sales[number[product]] += 1
    baskets.setdefault(customer, []).append(number[product])

old_products = model.vectors(products)
old_customers = {customer: model[customer] for customer in baskets}
methods = ("popularity", "not updated", "user-to-item", "item-to-item", "true tastes")
rows, bought_so_far = [], []

# %%
for customer, product in coming:
    if product not in number:  # new, and not placed before its first sale
        number[product] = len(products)
        products.append(product)
        model.add_vertex(product)
    bought, target = baskets.setdefault(customer, []), number[product]
    if bought:  # nothing is known about a customer without purchases
        vectors, sold = model.vectors(products), sales[: len(products)]
        stale = np.zeros(len(products))
        if customer in old_customers:
            stale[: len(old_products)] = old_products @ old_customers[customer]
        else:
            stale[:] = sold / sold.max()
        true = probability[
            int(customer.split()[1]), [int(name.split()[1]) for name in products]
        ]
        by_customer, by_basket = (
            vectors @ model[customer],
            vectors @ vectors[bought].mean(0),
        )
        similarity = (sold, stale, by_customer, by_basket, true)
        rows.append(
            [rank_of_purchase(each, sold, bought, target) for each in similarity]
        )
        bought_so_far.append(len(bought))
    model.add_edges(
        [(customer, product)]
    )  # the next recommendation takes the purchase into account
    sales[target] += 1
    bought.append(target)

alone, with_sales = np.moveaxis(np.array(rows), 2, 0)
best = np.where(
    [method in ("popularity", "true tastes") for method in methods], alone, with_sales
)
hits, mrr = np.mean(best <= 10, axis=0), np.mean(1 / best, axis=0)
print(f"{len(best):,} purchases evaluated   hit rate@10    MRR")
for method, hit, reciprocal in zip(methods, hits, mrr, strict=True):
    print(f"  {method:24} {hit:8.1%} {reciprocal:9.3f}")

# %% [markdown]
# *True tastes* is the upper limit: in the long run, no method can do better. The
# limit is below 100 %, because purchases are partly random.

# %% drawing
pieces = np.array_split(np.arange(len(best)), 8)
palette = {
    "popularity": "#8a91a0",
    "not updated": "#efb118",
    "user-to-item": "#4269d0",
    "item-to-item": "#3ca951",
}
plt.figure()
for method, color in palette.items():
    hit = best[:, methods.index(method)] <= 10
    along = [100 * hit[piece].mean() for piece in pieces]
    plt.plot([piece.mean() for piece in pieces], along, "o-", color=color, label=method)
plt.title("Updated vectors stay useful, old vectors do not")
plt.xlabel("purchases since the start")
plt.ylabel("hit rate@10 in %")
plt.ylim(0, 48)
plt.legend(ncol=4, loc="upper center", columnspacing=1.2)

# %% [markdown]
# ## New customers
#
# Every purchase tells more about a customer. A single purchase is enough to do
# better than popularity.

# %%
counts = np.array(bought_so_far)
after_one = {
    method: np.mean(best[counts == 1, methods.index(method)] <= 10)
    for method in methods
}
print(
    f"after one purchase: item-to-item {after_one['item-to-item']:.1%}, popularity {after_one['popularity']:.1%}"
)

# %% drawing
steps = [(1, 1), (2, 2), (3, 4), (5, 7), (8, 12)]
plt.figure()
for method in ("item-to-item", "user-to-item", "popularity"):
    hit = best[:, methods.index(method)] <= 10
    along = [
        100 * hit[(counts >= low) & (counts <= high)].mean() for low, high in steps
    ]
    plt.plot(range(len(steps)), along, "o-", color=palette[method], label=method)
plt.xticks(
    range(len(steps)),
    [str(low) if low == high else f"{low}–{high}" for low, high in steps],
)
plt.title("Hit rate from the first purchase on")
plt.xlabel("earlier purchases of the customer")
plt.ylabel("hit rate@10 in %")
plt.ylim(0)
plt.legend(loc="center right", bbox_to_anchor=(1, 0.42))

# %% [markdown]
# ## What does not work
#
# **Similarity alone.** A vector has a direction, and the direction describes the
# taste. It does not tell how well a product sells. Recommendations ranked by cosine
# alone match the taste, but contain too many products that hardly sell.

# %%
hits_alone = np.mean(alone <= 10, axis=0)
for method in ("user-to-item", "item-to-item"):
    place = methods.index(method)
    print(f"{method}, hit rate@10 by similarity alone: {hits_alone[place]:.1%}")
    print(f"{method}, hit rate@10 with sales:          {hits[place]:.1%}")

# %% [markdown]
# **Products without a purchase.** A product without an edge cannot be placed. It
# needs a first buyer, or another signal.
#
# **Changing tastes.** Tastes are constant in this example. If they change, old
# purchases should count less than new ones: use [`half_life`](../time.md).
#
# ## Summary
#
# - Customers and products are ordinary vertices.
# - Keep the sales counts in addition to the vectors, and use both.
# - The vector of a customer and the mean vector of the products that the customer
#   has bought work about equally well.

# %%
print(
    f"The next purchase is among ten recommendations in {hits[3]:.0%} of the cases\n"
    f"(item-to-item) or {hits[2]:.0%} (user-to-item). The share is {hits[1]:.0%} with vectors that\n"
    f"are not updated and {hits[0]:.0%} by popularity; the best possible share is {hits[4]:.0%}."
)
