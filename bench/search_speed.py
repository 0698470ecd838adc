"""How fast an index is built, opened and asked, at a thousand to a million tools."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import in_fresh_process, table
from bench.texts import asked, multiplied, real_tools
from pegboard.index.build import assemble, plan, texts_to_embed
from pegboard.index.embedders.static import StaticEmbedder
from pegboard.index.keeper import write_parts

SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUERIES = 400
AIMS_P95 = {10_000: 1.5, 100_000: 8.0, 1_000_000: 60.0}

ASK = """
import asyncio, json, resource, statistics, sys, time
from pathlib import Path
import numpy as np
from pegboard.index.embedders.static import StaticEmbedder
from pegboard.index.intent import understand
from pegboard.index.index import Index, Wanted
from pegboard.index.keeper import read_parts
from pegboard.store.arrays import open_arrays

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def anonymous():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1]) * 1024

path, queries = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
embedder = StaticEmbedder()
before, start = anonymous(), time.perf_counter()
index = Index(read_parts(open_arrays(path)))
opened = (time.perf_counter() - start) * 1000

def ask(query):
    intent = understand(query)
    return index.search(intent, embedder.embedded(intent.embedded), Wanted())

for query in queries[:60]:
    ask(query)
times = []
for query in queries:
    start = time.perf_counter()
    ask(query)
    times.append((time.perf_counter() - start) * 1000)
anon, rss = anonymous() - before, resident()
async def many():
    gate = asyncio.Semaphore(16)
    async def one(query):
        async with gate:
            ask(query)
            await asyncio.sleep(0)
    start = time.perf_counter()
    await asyncio.gather(*(one(query) for query in queries))
    return len(queries) / (time.perf_counter() - start)
rate = asyncio.run(many())
times.sort()
at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
print(json.dumps({"open_ms": opened, "p50_ms": at(.5), "p95_ms": at(.95), "p99_ms": at(.99),
                  "queries_s_16": rate, "memory_mb": anon / 2**20, "resident_mb": rss / 2**20}))
"""


def run(folder: Path, sizes: tuple[int, ...] = SIZES) -> dict[str, object]:
    """Builds each size once, then asks it from a fresh process."""
    queries = folder / "queries.json"
    queries.write_text(json.dumps(asked(QUERIES)))
    results: dict[str, object] = {}
    rows = []
    for size in sizes:
        print(f"  {size:,} tools …", file=sys.stderr, flush=True)
        built = _build(size, folder / f"{size}.index")
        found = json.loads(in_fresh_process(ASK, str(folder / f"{size}.index"), str(queries)))
        (folder / f"{size}.index").unlink()
        results[str(size)] = {**built, **found}
        rows.append(_row(size, built, found))
    headers = ("tools", "build s", "disk B/tool", "open ms", "p50 ms", "p95 ms", "p99 ms", "16 at once /s", "memory MB")
    table(f"Hybrid search with the built-in embedder ({real_tools()[1]}, varied for size)", headers, rows)
    for size, aim in AIMS_P95.items():
        if str(size) in results:
            p95 = float(results[str(size)]["p95_ms"])  # type: ignore[index]
            print(f"  aim: p95 at {size:,} at most {aim} ms: {'met' if p95 <= aim else 'NOT met'}")
    return results


def _build(size: int, path: Path) -> dict[str, float]:
    tools = list(multiplied(size))
    embedder = StaticEmbedder()
    start = time.perf_counter()
    work = plan(tools, embedder.identity)
    vectors = embedder.embedded(texts_to_embed(work))
    parts = assemble(work, catalog="bench", embedder=embedder.identity, vectors=vectors)
    written = write_parts(path, parts)
    return {"build_s": time.perf_counter() - start, "disk_per_tool": written / size}


def _row(size: int, built: dict[str, float], found: dict[str, float]) -> list[str]:
    return [
        f"{size:,}",
        f"{built['build_s']:.1f}",
        f"{built['disk_per_tool']:.0f}",
        *(f"{found[key]:.2f}" for key in ("open_ms", "p50_ms", "p95_ms", "p99_ms")),
        f"{found['queries_s_16']:.0f}",
        f"{found['memory_mb']:.0f}",
    ]


def main() -> None:
    """`python -m bench.search_speed [SIZE …]`: these sizes only."""
    sizes = tuple(int(each) for each in sys.argv[1:]) or SIZES
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), sizes)


if __name__ == "__main__":
    main()
