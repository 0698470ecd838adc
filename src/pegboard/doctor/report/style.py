"""How the page looks, in the light and in the dark, on a wide screen, a narrow one and on paper.

Above: `page`. Below: nothing.
"""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1a2027; --soft: #5a6673; --paper: #f4f6f8; --card: #ffffff; --line: #dfe4ea;
  --before: #9aa6b4; --since: #2f6fd0; --good: #17713f; --alarm: #b3261e; --good-wash: #e2f4e9; --alarm-wash: #fdeceb;
  --wash: #eceff3; --shade: 0 1px 2px rgb(16 24 40 / .06), 0 1px 6px rgb(16 24 40 / .05); }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --soft: #a2adba; --paper: #12161b; --card: #1a2027;
  --line: #2f3843; --before: #6d7a89; --since: #6ea8fe; --good: #5fd394; --alarm: #ff9a92; --good-wash: #17301f;
  --alarm-wash: #3a1d1c; --wash: #262e37; --shade: none; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink); background: var(--paper);
  margin: 0; }
main { max-width: 72rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; letter-spacing: -.02em; margin: 0; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 0; overflow-wrap: anywhere; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
code { font: .85em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.soft { color: var(--soft); } .small { font-size: .85rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1.25rem 1.5rem;
  margin: 1.25rem 0; box-shadow: var(--shade); }
.alarm { background: var(--alarm-wash); border: 1px solid var(--alarm); border-left-width: .4rem; border-radius: .5rem;
  padding: .75rem 1.25rem; margin: 1.25rem 0; }
.head { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; }
.state { display: inline-block; border-radius: 1rem; padding: .1rem .7rem; font-size: .85rem; font-weight: 600;
  white-space: nowrap; background: var(--wash); color: var(--soft); }
.state.good { background: var(--good-wash); color: var(--good); }
.state.bad { background: var(--alarm-wash); color: var(--alarm); }
.good { color: var(--good); } .bad { color: var(--alarm); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .75rem 1rem; }
.card .tile { background: var(--paper); }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; font-variant-numeric: tabular-nums; } dd.figure { font-size: 1.35rem; font-weight: 650;
  letter-spacing: -.01em; } dd.figure span { color: var(--soft); font-weight: 400; }
.big dd.figure { font-size: 1.9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
caption { text-align: left; color: var(--soft); font-size: .85rem; padding-bottom: .5rem; }
th, td { border-top: 1px solid var(--line); padding: .6rem .4rem; text-align: left; vertical-align: middle; }
thead th { border-top: 0; color: var(--soft); font-weight: 500; font-size: .8rem; }
tbody th { font-weight: 600; min-width: 12rem; } tbody th .soft, .below { display: block; font-weight: 400;
  white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
td.spark { min-width: 6.5rem; }
details { margin-top: 1rem; } summary { cursor: pointer; color: var(--soft); }
details th { min-width: 0; } details th, details td { padding: .25rem .7rem; } details .scroll { margin-top: .75rem; }
figure { margin: 1.25rem 0 0; } figcaption { font-size: .9rem; font-weight: 600; margin-bottom: .25rem; }
figcaption span { display: block; color: var(--soft); font-weight: 400; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 0 2rem;
  align-items: end; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; }
.before { fill: var(--before); } .since { fill: var(--since); } .grid { stroke: var(--line); }
.applied { stroke: var(--ink); stroke-dasharray: 4 3; } .mean { stroke: var(--ink); stroke-width: 1.5; }
ul { color: var(--soft); font-size: .9rem; padding-left: 1.2rem; }
@media print { body { background: none; } .card, .tile { box-shadow: none; break-inside: avoid; } }
"""
