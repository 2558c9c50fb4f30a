"""Labels as nodes of a graph of co-occurrences, embedded by a graph network.

CLIF's half that sees no features: which labels come together in the training rows
becomes a vector for each label.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._support.torch import Weights, import_torch
from ._layers import (
    Shapes,
    constant,
    kaiming_interval,
    linear,
    linear_shapes,
    new_linear,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

#: Slope of the leaky ReLU below 0, everywhere in CLIF.
SLOPE = 0.1
#: Where biases of the layers before one start.
BIAS_INTERVAL = (0.0, 0.1)

_N_LAYERS = 2
_MOMENTUM = 0.1  # the share of a new step in the running statistics
_NORM_EPSILON = 1e-5  # added to a variance
_COSINE_EPSILON = 1e-6  # added to the norm of each embedding
_SMALLEST_COUNT = 1e-6  # divides the row of a label without positives


def label_graph(y: Tensor, weight: Tensor) -> Tensor:
    """How likely labels come together: P(j | i) and P(i | j), averaged.

    Parameters
    ----------
    y : tensor of shape (n, K)
        Indicator of the training rows.
    weight : tensor of shape (n,)
        A row of weight 2 counts as two rows.

    Returns
    -------
    tensor of shape (K, K)
        Symmetric, in [0, 1], its diagonal 0. A label without positives has no
        neighbours.

    Examples
    --------
    >>> import torch
    >>> from clml.baselines._label_graph import label_graph
    >>> y = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    >>> label_graph(y, torch.ones(2))
    tensor([[0.0000, 0.7500],
            [0.7500, 0.0000]])
    """
    torch = import_torch()
    # In double precision: float32 cannot count beyond 2**24 rows.
    together = y.double().T @ (y.double() * weight.double()[:, None])
    counts = together.diagonal().clamp_min(_SMALLEST_COUNT)
    conditional = together / counts[:, None]
    conditional = conditional - torch.diag(conditional.diagonal())
    return ((conditional + conditional.T) / 2).to(y.dtype)


def graph_loss(embeddings: Tensor, graph: Tensor) -> Tensor:
    """Mean squared distance of cosines of embeddings from the graph with self-loops.

    Parameters
    ----------
    embeddings : tensor of shape (K, E)
        Each is divided by its own norm plus 1e-6.
    graph : tensor of shape (K, K)

    Returns
    -------
    tensor of shape ()
    """
    torch = import_torch()
    norm = torch.linalg.vector_norm(embeddings, dim=1, keepdim=True)
    unit = embeddings / (norm + _COSINE_EPSILON)
    target = graph + torch.eye(len(graph), dtype=graph.dtype, device=graph.device)
    return (target - unit @ unit.T).square().mean()


def new_label_encoder(
    graph: Tensor, embedding_dim: int, generator: Generator
) -> Weights:
    """Return the weights of the encoder, and beside them the graph and its input.

    Each label starts as K random numbers, which are drawn once and not trained.
    """
    torch = import_torch()
    n_in, n_hidden = len(graph), math.ceil(embedding_dim / 2)
    weights: Weights = {
        "graph": graph,
        "label_input": torch.randn(
            graph.shape, generator=generator, dtype=torch.float32, device="cpu"
        ),
    }
    for layer in range(_N_LAYERS):
        name = f"gin{layer}"
        weights[f"{name}.epsilon"] = constant((), 0.0)
        for part, n_out in enumerate((n_hidden, embedding_dim)):
            weights |= new_linear(
                f"{name}.linear{part}",
                n_in,
                n_out,
                generator,
                weight=kaiming_interval(n_in, SLOPE),
                bias=BIAS_INTERVAL,
            )
            weights |= _new_node_norm(f"{name}.norm{part}", n_out)
            n_in = n_out
    return weights


def label_encoder_shapes(n_labels: int, embedding_dim: int) -> Shapes:
    """Return the shapes of what :func:`new_label_encoder` makes."""
    n_hidden, n_in = math.ceil(embedding_dim / 2), n_labels
    shapes: Shapes = {
        "graph": (n_labels, n_labels),
        "label_input": (n_labels, n_labels),
    }
    for layer in range(_N_LAYERS):
        shapes[f"gin{layer}.epsilon"] = ()
        for part, n_out in enumerate((n_hidden, embedding_dim)):
            shapes |= linear_shapes({f"gin{layer}.linear{part}": (n_in, n_out)})
            for name in ("scale", "shift", "mean", "variance"):
                shapes[f"gin{layer}.norm{part}.{name}"] = (n_out,)
            n_in = n_out
    return shapes


def embed_labels(weights: Weights, *, training: bool) -> Tensor:
    """Return the embeddings of all labels, (K, E).

    In training nodes are standardised by their own mean and variance, which also
    move the running ones; otherwise by the running ones.
    """
    h, graph = weights["label_input"], weights["graph"]
    for layer in range(_N_LAYERS):
        out = gin_layer(weights, f"gin{layer}", h, graph, training=training)
        # The sum needs equal shapes, which the first layer has only if K is E.
        h = out + h if out.shape == h.shape else out
    return h


def gin_layer(
    weights: Weights, name: str, h: Tensor, graph: Tensor, *, training: bool
) -> Tensor:
    """Add up each node and its neighbours, then apply two layers to all: (K, E)."""
    torch = import_torch()
    h = (1 + weights[f"{name}.epsilon"]) * h + graph @ h
    for part in range(2):
        h = linear(weights, f"{name}.linear{part}", h)
        h = node_norm(weights, f"{name}.norm{part}", h, training=training)
        h = torch.nn.functional.leaky_relu(h, SLOPE)
    return h


def _new_node_norm(name: str, n_units: int) -> Weights:
    return {
        f"{name}.scale": constant((n_units,), 1.0),
        f"{name}.shift": constant((n_units,), 0.0),
        f"{name}.mean": constant((n_units,), 0.0).requires_grad_(False),
        f"{name}.variance": constant((n_units,), 1.0).requires_grad_(False),
    }


def node_norm(weights: Weights, name: str, h: Tensor, *, training: bool) -> Tensor:
    """Standardise each column over the nodes, then scale and shift it.

    In training the running mean and (unbiased) variance move in place. A single node
    has nothing to be standardised against: it becomes the shift, in training and
    after.
    """
    torch = import_torch()
    scale, shift = weights[f"{name}.scale"], weights[f"{name}.shift"]
    if len(h) == 1:
        return torch.zeros_like(h) * scale + shift
    return torch.nn.functional.batch_norm(
        h,
        weights[f"{name}.mean"],
        weights[f"{name}.variance"],
        scale,
        shift,
        training=training,
        momentum=_MOMENTUM,
        eps=_NORM_EPSILON,
    )
