"""Settings of CLMLClassifier written flat, so that tests can merge and vary them."""

from clml._training.searches import SEARCHES
from clml.network import PaperNetwork


def nested(settings):
    """Return the settings with those of searches and the paper's network in values.

    ``{"search": "cma", "sigma0": 2.0, "embedding_dim": 4}`` is
    ``{"search": CMA(sigma0=2.0), "network": PaperNetwork(embedding_dim=4)}``.
    """
    found, of_search, of_network = {}, {}, {}
    search = settings.get("search")
    kind = SEARCHES.get(search) if isinstance(search, str) else None
    for name, value in settings.items():
        if kind is not None and name in kind._defaults():
            of_search[name] = value
        elif name in PaperNetwork._defaults():
            of_network[name] = value
        else:
            found[name] = value
    if of_search:
        found["search"] = kind(**of_search)
    if of_network:
        found["network"] = PaperNetwork(**of_network)
    return found
