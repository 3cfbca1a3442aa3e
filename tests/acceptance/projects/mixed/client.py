"""Submits a mix of calls; prints what became of each submit as lines of JSON: [kind, number, id]."""

import json
import sys
from datetime import datetime, timedelta, timezone

from shop.mail import remind, unreachable, unsteady
from shop.orders import forget, refuse, ship

PRIORITIES = range(-9, 10)


def submit(number):
    priority = PRIORITIES[number % len(PRIORITIES)]
    kind = number % 10
    if kind < 4:
        return "ship", ship.apply_async((number,), priority=priority)
    if kind == 4:
        return "refuse", refuse.apply_async((number,), priority=priority)
    if kind == 5:
        return "unsteady", unsteady.apply_async((number,), priority=priority)
    if kind == 6:
        return "remind", remind.apply_async(
            (number,),
            priority=priority,
            eta=datetime.now(timezone.utc) + timedelta(seconds=number % 4),
        )
    if kind == 7:
        return "expired", ship.apply_async((number,), priority=priority, countdown=5, expires=1)
    if kind == 8:
        return "forget", forget.apply_async((number,), priority=priority)
    return "unreachable", unreachable.apply_async((number,), priority=priority)


for number in range(int(sys.argv[1])):
    kind, result = submit(number)
    print(json.dumps([kind, number, result.id]))
