"""The paper's Tables I and II: weights, Sinkhorn-Knopp, and the filters made of them."""
