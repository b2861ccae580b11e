# SPDX-License-Identifier: Apache-2.0
"""NetworkX: shortest paths, page rank in Python, matching."""
import networkx as nx

graph = nx.barabasi_albert_graph(200, 3, seed=1)
while True:
    nx.betweenness_centrality(graph, k=10, seed=1)
    nx.max_weight_matching(graph.subgraph(list(graph)[:60]))
    list(nx.connected_components(graph))
