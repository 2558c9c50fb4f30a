"""The label graph and its encoder."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clml.baselines._label_graph import (
    gin_layer,
    graph_loss,
    label_graph,
    node_norm,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tensor(values):
    return torch.tensor(np.asarray(values, dtype=np.float64))


def test_label_graph_by_hand():
    # Label 0 in four rows; label 1 in two of them; label 2 never.
    y = tensor([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0]])
    # P(1 | 0) = 2/4 and P(0 | 1) = 2/2, averaged.
    expected = [[0, 0.75, 0], [0.75, 0, 0], [0, 0, 0]]
    assert label_graph(y, torch.ones(4)).tolist() == expected
    # The first row counted three times: P(1 | 0) = 4/6.
    graph = label_graph(y, tensor([3, 1, 1, 1]))
    np.testing.assert_allclose(graph[0, 1], (4 / 6 + 1) / 2)


@given(
    arrays(
        np.uint8,
        st.tuples(st.integers(1, 6), st.integers(1, 4)),
        elements=st.integers(0, 1),
    ),
    st.data(),
)
def test_label_graph_is_symmetric_and_counts_weights_as_rows(Y, data):
    repeats = data.draw(arrays(np.int64, len(Y), elements=st.integers(1, 3)))
    graph = label_graph(tensor(Y), tensor(repeats / repeats.mean())).numpy()
    repeated = np.repeat(Y, repeats, axis=0)
    np.testing.assert_allclose(
        graph, label_graph(tensor(repeated), torch.ones(len(repeated))), atol=1e-12
    )
    np.testing.assert_array_equal(graph, graph.T)
    assert (np.diag(graph) == 0).all()
    assert graph.min() >= 0 and graph.max() <= 1 + 1e-12
    np.testing.assert_allclose(graph, slow_graph(repeated), atol=1e-12)


def slow_graph(Y):
    n_labels = Y.shape[1]
    graph = np.zeros((n_labels, n_labels))
    for i in range(n_labels):
        for j in range(n_labels):
            both = sum(int(y[i] and y[j]) for y in Y)
            for label in (i, j):
                if i != j and Y[:, label].sum():
                    graph[i, j] += both / Y[:, label].sum() / 2
    return graph


def test_label_graph_keeps_the_type():
    y = torch.tensor([[1.0, 1.0]])
    assert label_graph(y, torch.ones(1)).dtype == torch.float32
    assert label_graph(y.double(), torch.ones(1)).dtype == torch.float64


def test_graph_loss_by_hand():
    embeddings, graph = tensor([[3, 4], [4, 3]]), tensor([[0, 0.5], [0.5, 0]])
    # Cosine 24/25 where the graph says 1/2, twice of four; 1 with itself.
    loss = graph_loss(embeddings, graph)
    np.testing.assert_allclose(loss, 2 * (0.5 - 0.96) ** 2 / 4, rtol=1e-5)


def test_graph_loss_adds_to_the_norm_of_each_embedding():
    # A norm of 1e-6 becomes 2e-6: the cosine with itself is 1/4, not 1.
    loss = graph_loss(tensor([[1e-6, 0]]), tensor([[0]]))
    np.testing.assert_allclose(loss, (1 - 1 / 4) ** 2)


def test_graph_loss_of_no_embedding_is_finite():
    embeddings = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    loss = graph_loss(embeddings, tensor([[0, 0], [0, 0]]))
    loss.backward()
    assert loss.item() == 0.5  # the two self-loops, of four
    assert torch.equal(embeddings.grad, torch.zeros(2, 3, dtype=torch.float64))


# The encoder


def hand_made_layer():
    return {
        "gin.epsilon": tensor(1.0),
        "gin.linear0.weight": tensor([[1.0]]),
        "gin.linear0.bias": tensor([0.0]),
        "gin.norm0.scale": tensor([2.0]),
        "gin.norm0.shift": tensor([1.0]),
        "gin.norm0.mean": tensor([0.0]),
        "gin.norm0.variance": tensor([1.0]),
        "gin.linear1.weight": tensor([[1.0]]),
        "gin.linear1.bias": tensor([5.0]),
        "gin.norm1.scale": tensor([1.0]),
        "gin.norm1.shift": tensor([0.0]),
        "gin.norm1.mean": tensor([0.0]),
        "gin.norm1.variance": tensor([1.0]),
    }


def test_gin_layer_of_two_nodes_by_hand():
    weights, graph = hand_made_layer(), tensor([[0, 0.5], [0.5, 0]])
    h = tensor([[1], [3]])
    # Not in training, where mean 0 and variance 1 change nothing: nodes are
    # 2·1 + 1.5 and 2·3 + 0.5; times 2 plus 1: 8 and 14; plus 5.
    out = gin_layer(weights, "gin", h, graph, training=False)
    np.testing.assert_allclose(out, [[13], [19]], rtol=1e-4)
    assert weights["gin.norm0.mean"].item() == 0
    # In training 3.5 and 6.5 become -1 and 1, then -1 and 3, after the leaky ReLU
    # -0.1 and 3; the second layer makes these -1 and 1 again.
    out = gin_layer(weights, "gin", h, graph, training=True)
    np.testing.assert_allclose(out, [[-0.1], [1]], rtol=1e-4)
    # A tenth of the mean 5 and of the unbiased variance 2·1.5².
    np.testing.assert_allclose(weights["gin.norm0.mean"], [0.5])
    np.testing.assert_allclose(weights["gin.norm0.variance"], [0.9 + 0.45])


def test_node_norm_is_batch_norm():
    norm = torch.nn.BatchNorm1d(3).double()
    norm.weight.data, norm.bias.data = tensor([1, 2, -1]), tensor([0, 1, 0.5])
    weights = {
        "n.scale": norm.weight.detach().clone(),
        "n.shift": norm.bias.detach().clone(),
        "n.mean": torch.zeros(3, dtype=torch.float64),
        "n.variance": torch.ones(3, dtype=torch.float64),
    }
    random = np.random.default_rng(0)
    for _ in range(4):
        h = tensor(random.normal(loc=3, scale=2, size=(5, 3)))
        h[:, 2] = 7.0  # a constant column
        norm.train()
        np.testing.assert_allclose(
            node_norm(weights, "n", h, training=True), norm(h).detach(), atol=1e-12
        )
        norm.eval()
        np.testing.assert_allclose(
            node_norm(weights, "n", h, training=False), norm(h).detach(), atol=1e-12
        )
    np.testing.assert_allclose(weights["n.mean"], norm.running_mean)
    np.testing.assert_allclose(weights["n.variance"], norm.running_var)


@pytest.mark.parametrize("training", [True, False])
def test_a_single_node_becomes_the_shift(training):
    weights = {
        "n.scale": tensor([2, 3]),
        "n.shift": tensor([-1, 4]),
        "n.mean": tensor([5, 5]),
        "n.variance": tensor([9, 9]),
    }
    out = node_norm(weights, "n", tensor([[10, 20]]), training=training)
    assert out.tolist() == [[-1, 4]]
    assert weights["n.mean"].tolist() == [5, 5]
    assert weights["n.variance"].tolist() == [9, 9]
