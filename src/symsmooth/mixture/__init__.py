"""The paper's mixture: EM (Algorithm 2), SURE and the choice of k (Algorithm 3), and GSF, made of them."""
