"""Words that mean the same where tools are concerned, and common words of other languages in English.

Short on purpose: what an embedder knows of language is not repeated here; what people call things at work, and the
few dozen words that requests in other languages are made of, is. Above: `intent`. Below: `text`.
"""

from __future__ import annotations

import re
from functools import cache

from pegboard.index.text import HIRAGANA, UNSPACED, fold, stem

_WORD = re.compile(r"[^\W\d_]+")

SAME = (
    "issue ticket bug",
    "pr pull",
    "mr merge",
    "error exception crash",
    "write save",
    "email mail inbox",
    "message dm sms text",
    "event meeting appointment calendar",
    "invoice bill",
    "repo repository",
    "folder directory",
    "document doc",
    "picture photo image",
    "movie film",
    "song track music",
    "delete remove",
    "create add new",
    "search find lookup",
    "update edit modify change",
    "fetch get retrieve read",
    "send post tell",
    "log logs",
    "db database",
    "sql query",
    "k8s kubernetes",
    "phone call",
    "price cost quote",
    "stock share ticker",
    "crypto coin token",
    "website web page url site",
    "customer client account",
    "task todo",
    "buy purchase order",
    "refund reimburse",
    "upload attach",
    "screenshot capture",
    "weather forecast",
    "route directions",
    "job role position",
    "paper article publication",
    "pause stop halt",
    "summarize summary",
    "translate translation",
    "calculate compute",
    "reservation booking book reserve",
    "flight plane",
    "location place",
)
"""The words of a line stand for each other."""

ENGLISH = {
    # Spanish
    "crear crea": "create",
    "enviar envia manda mandar": "send",
    "buscar busca": "search",
    "borrar eliminar elimina": "delete",
    "leer lee": "read",
    "listar muestra mostrar": "list",
    "mensaje": "message",
    "correo": "email",
    "archivo": "file",
    "carpeta": "folder",
    "reunion": "meeting",
    "canal": "channel",
    "factura": "invoice",
    "cliente": "customer",
    "tiempo clima": "weather",
    "actualizar": "update",
    "calendario": "calendar",
    "pausa": "pause",
    # German
    "erstelle erstellen anlegen": "create",
    "sende senden schicke schicken": "send",
    "suche suchen finde finden": "search",
    "losche loschen entferne": "delete",
    "lies lesen": "read",
    "zeige zeigen": "show",
    "nachricht": "message",
    "datei": "file",
    "ordner": "folder",
    "termin besprechung": "meeting",
    "kanal": "channel",
    "rechnung": "invoice",
    "kunde kunden": "customer",
    "wetter": "weather",
    "aktualisiere": "update",
    "kalender": "calendar",
    # French
    "creer cree": "create",
    "envoyer envoie": "send",
    "chercher cherche rechercher trouve": "search",
    "supprimer supprime": "delete",
    "lire lis": "read",
    "afficher affiche montre": "show",
    "fichier": "file",
    "dossier": "folder",
    "reunion rendezvous": "meeting",
    "facture": "invoice",
    "meteo": "weather",
    "calendrier": "calendar",
    # Japanese and Chinese
    "作成": "create",
    "送信": "send",
    "検索": "search",
    "削除": "delete",
    "表示": "show",
    "一覧": "list",
    "更新": "update",
    "メッセージ": "message",
    "メール": "email",
    "ファイル": "file",
    "会議": "meeting",
    "予定": "event",
    "天気": "weather",
    "翻訳": "translate",
    "請求書": "invoice",
    "创建": "create",
    "发送": "send",
    "搜索": "search",
    "查询": "query",
    "删除": "delete",
    "列出": "list",
    "消息": "message",
    "邮件": "email",
    "文件": "file",
    "会议": "meeting",
    "天气": "weather",
    "翻译": "translate",
    "发票": "invoice",
    "地图": "map",
    "图片": "image",
}
"""What requests in other languages are made of, and what it is in English."""


@cache
def _same() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in SAME:
        stems = list(dict.fromkeys(stem(word) for word in line.split()))
        for each in stems:
            found.setdefault(each, {}).update(dict.fromkeys(other for other in stems if other != each))
    return {word: tuple(others) for word, others in found.items()}


@cache
def _english() -> dict[str, str]:
    return {word: english for words, english in ENGLISH.items() for word in words.split()}


def same_as(term: str) -> tuple[str, ...]:
    """The terms that this one may stand for."""
    return _same().get(term, ())


def in_english(text: str) -> list[str]:
    """English words for those of other languages in a text, in their order."""
    english = _english()
    found = [english[word] for word in _WORD.findall(fold(text).lower()) if word in english]
    if not text.isascii():
        for run in UNSPACED.findall(text):
            if not HIRAGANA.fullmatch(run):
                found += [english[word] for word in english if not word.isascii() and word in run]
    return list(dict.fromkeys(found))
