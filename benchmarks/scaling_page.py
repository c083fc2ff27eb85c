"""Write the tables of docs/scaling.md: accuracy at every size, and rows on a cluster.

python benchmarks/scaling_page.py            refresh the page and its plots
python benchmarks/scaling_page.py --check    say whether it is up to date
"""

from __future__ import annotations

from pathlib import Path

import cluster_page
import size_page
from marked import Blocks, write

DOCUMENTS = Path(__file__).parent.parent / "docs"
PAGE, IMAGES = DOCUMENTS / "scaling.md", DOCUMENTS / "images"
BLOCKS: Blocks = {"size": size_page.block, "cluster": cluster_page.block}

if __name__ == "__main__":
    write(PAGE, BLOCKS)
    size_page.draw(IMAGES)
