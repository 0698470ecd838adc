"""An MCP server with two dozen tools that look like work, and a log of every call with its arguments.

Started as `python books.py --name books --log FILE`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.servers.plain import Call, Json, PlainServer, parse, text_result

VERBS = {
    "create": "Makes a new one. Fails when there is one of this number already, and says which.",
    "refund": "Gives the money back, all of it or a part, by the way on which it came, and writes a receipt.",
    "archive": "Puts it away where no report counts it any more; it can be taken back for ninety days.",
    "compare": "Says in what it differs from another one, line by line, with the sums of both sides.",
}
NOUNS = {
    "invoice": "A bill that was sent to a customer, with its lines, its taxes and the day on which it is due.",
    "payslip": "What an employee was paid in one month, with what was kept back for taxes and insurance.",
    "voucher": "A card with a balance, bought by one customer and spent by another, now or in three years.",
    "shipment": "Parcels that left the house together, with their weights, carriers and tracking numbers.",
    "contract": "What was agreed with a supplier: prices, quantities, how long it runs and how it ends.",
    "complaint": "What a customer was unhappy with, who looked after it, and what came of that.",
}
LINE: Json = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "description": "The article's number, as it is printed on the shelf."},
        "count": {"type": "integer", "minimum": 1, "description": "How many of them."},
    },
    "required": ["sku", "count"],
}


def definition(verb: str, noun: str) -> Json:
    """One tool."""
    properties: Json = {
        noun: {"type": "string", "description": f"The number of the {noun}, such as {noun[:3].upper()}-1001."},
        "amount": {"type": "number", "description": "In the currency that is given, with cents after the point."},
        "currency": {"type": "string", "enum": ["EUR", "USD", "JPY"], "description": "As ISO 4217 has it."},
        "lines": {"type": "array", "items": LINE, "description": "Which lines it is about; all when left out."},
        "note": {"type": "string", "description": "Why this is done, for whoever reads the books later."},
    }
    schema = {"type": "object", "properties": properties, "required": [noun]}
    return {"name": f"{verb}_{noun}", "description": f"{VERBS[verb]} {NOUNS[noun]}", "inputSchema": schema}


def receipt(name: str, arguments: Json) -> str:
    """What only somebody who got exactly these arguments can answer."""
    text = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
    return f"receipt-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class Books(PlainServer):
    """Every call gets a receipt."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.named = [definition(verb, noun) for verb in VERBS for noun in NOUNS]

    def log(self, line: str) -> None:
        """Calls alone are of interest."""

    def call_tool(self, call: Call) -> Json:
        """Logs it whole, and gives the receipt."""
        name, arguments = str(call.params.get("name")), call.arguments
        if all(name != each["name"] for each in self.named):
            return text_result(f"There is no {name}.", isError=True)
        record: dict[str, Any] = {"server": self.options["name"], "name": name, "arguments": arguments}
        with Path(self.options["log"]).open("a") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        return text_result(f"Done: {receipt(name, arguments)}")


if __name__ == "__main__":
    try:
        Books(parse(sys.argv[1:])).run()
    except BrokenPipeError:
        os._exit(0)
