"""Plans of moves: evictions in an order in which the scheduling cycle places each evicted pod again.

May import what `planning` may import. Only searches and proves plans on a cache; `app` carries them out.
"""
