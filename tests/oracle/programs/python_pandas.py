# SPDX-License-Identifier: Apache-2.0
"""pandas: groups, joins, sorting, CSV."""
import io

import numpy as np
import pandas as pd

rng = np.random.default_rng(2)
frame = pd.DataFrame({"k": rng.integers(0, 50, 5000), "v": rng.random(5000), "s": [f"s{i % 97}" for i in range(5000)]})
while True:
    groups = frame.groupby("k").agg({"v": ["mean", "std"], "s": "nunique"})
    frame.merge(groups["v"], left_on="k", right_index=True).sort_values("v")
    pd.read_csv(io.StringIO(frame.head(500).to_csv()))
    frame.groupby("s")["v"].apply(lambda v: v.max() - v.min())
