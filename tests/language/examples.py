"""The subscriptions that the language's design prints, one of each form."""

EXAMPLES = {
    "filter": "symbol = 'IBM' and price > 100",
    "filter with select": (
        "select symbol, price from stock where symbol in ('IBM','MSFT') and price between 20 and 60"
    ),
    "sequence": """
        from stock a where a.symbol = 'IBM' and a.price > 100
        next stock b on b.symbol = 'MSFT'
        where b.price < 25""",
    "view": "select min(per) from table stock where risk between 20 and 60",
    "comparisons": "a = 1 and b != 2 and c <> 3 and d < 4 and e <= 5 and f > 6 and g >= 7.5",
    "kinds": "a = 'x' and b = true and c = timestamp '2026-01-01T00:00:00Z' and d = -1e3",
    "not between": "a not between 1 and 2",
    "lists": "a in (1, 'x', false) and b not in (2)",
    "empty list": "a in ()",
    "like": "a like 'ab%' or a like '%yz' or a like '%mid%' or a like 'a_c%d' or a not like 'x%'",
    "readable twins": "a starts with 'ab' or a ends with 'yz' or a contains 'mid'",
    "negative twins": "a not starts with 'ab' or a not ends with 'yz' or a not contains 'mid'",
    "regex": "a ~ '^x+$' and b !~ 'y'",
    "presence": "a is missing or b is present or c is null or d is not null",
    "arithmetic": "price > 1.05 * open",
    "constants": "true or false and not (a = 1 or not b = 2)",
    "names": """data.address.city = 'Oslo' and "my name" = 'x' and "select" = 1 and a."b c".d = 2""",
    "case and comments": "A = 1 AND -- a comment\n NOT b = 2 Or c IN (1)",
    "quote in string": "name = 'O''Brien'",
    "S3": "from stock a next stock b on b.name = a.name where b.price > 1.05 * a.price",
    "S4": """
        from stock a fold stock b on b.name = a.name while b.price >= last.price
        where duration >= 30 minutes""",
    "S5": """
        from stock a where a.name = 'IBM'
        fold stock b on b.name = 'IBM' compute mean = avg(price) where duration >= 52 weeks
        next stock c on c.name = 'IBM' where c.price > mean""",
    "S6": """
        from blog a where a.site = 'military.blog.com' and a.category = 'US troop morale'
        next blog b on b.description contains a.link and b.site in ('s1','s2')""",
    "S7": """
        from blog a where a.site in ('s1','s2') and a.description contains 'XYZ'
        fold blog b on b.site in ('s1','s2') and b.description contains last.link""",
    "AutQ": """
        from stock a where a.vol > 10000
        fold stock b on b.name = a.name while b.price < last.price where duration >= 10 minutes
        next stock c on c.name = a.name where c.price > 1.05 * b.price""",
    "start values": """
        from stock a compute cnt = 1
        fold stock b on b.name = a.name compute cnt = last.cnt + 1, top = max(price), n = count(*)
        where duration between 3 and 10 ticks
        within 2 hours select a.name, cnt as length, b.price / a.price as ratio publish as runs""",
    "published filter": "select symbol from stock where price > 100 publish as dear",
    "resubscription": "from runs r next (from stock a next stock b on b.name = a.name) p on p.name = r.name",
    "any event": "from stock a next stock b",
    "distinct": "select distinct sector from table stock where price between 10 and 20",
    "join": """
        select * from table orders o join table products p on o.product = p.id
        where p.price < 10 and o.qty > 100""",
    "aggregates": "select count(*), sum(qty), avg(qty), max(qty) as most from table orders where qty > 1",
}

TEMPLATES = [
    "symbol = :s and price > :p",
    "symbol in :symbols and price between :low and :high",
    "name like :pattern or name ~ :regex",
    "from stock a next stock b on b.name = a.name where b.price > :factor * a.price within :limit",
    "select min(per) from table stock where risk between :low and :high",
]
