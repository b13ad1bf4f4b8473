"""The papers' examples of sequences, as the language writes them."""

PAPERS = {
    "S1": "from stock a where a.name = 'IBM' and a.price > 100 publish as dear",
    "S2": """from stock a where a.name = 'IBM' and a.price > 100
        next stock b on b.name = 'MSFT' where b.price < 25""",
    "S3": "from stock a next stock b on b.name = a.name where b.price > 1.05 * a.price",
    "S4": """from stock a fold stock b on b.name = a.name while b.price >= last.price
        where duration >= 30 minutes""",
    "S5": """from stock a where a.name = 'IBM'
        fold stock b on b.name = 'IBM' compute mean = avg(price) where duration >= 52 weeks
        next stock c on c.name = 'IBM' where c.price > mean""",
    "S6": """from blog a where a.site = 'military.blog.com' and a.category = 'US troop morale'
        next blog b on b.description contains a.link and b.site in ('s1', 's2')""",
    "S7": """from blog a where a.site in ('s1', 's2') and a.description contains 'XYZ'
        fold blog b on b.site in ('s1', 's2') and b.description contains last.link""",
    "AutQ": """from stock a where a.vol > 10000
        fold stock b on b.name = a.name while b.price < last.price where duration >= 10 minutes
        next stock c on c.name = a.name where c.price > 1.05 * b.price""",
}
