"""What the tutorial types into a shell, one call after the other; prints what it sees as JSON."""

import json

from tasks import add

result = add.delay(4, 4)
value = result.get(timeout=20)
print(
    json.dumps(
        {
            "value": value,
            "ready": result.ready(),
            "successful": result.successful(),
            "state": result.state,
            "direct": add(2, 3),
            "name": add.name,
        }
    )
)
