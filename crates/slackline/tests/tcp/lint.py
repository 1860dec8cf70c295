"""lint.py URL TOKEN: what REDbot notes of an address that needs a token, a line each.

Its own command sends no header of ours, so that it would see a refusal and nothing else.
"""

import sys
from configparser import ConfigParser

import thor
from redbot.resource import HttpResource

config = ConfigParser()
config.read_dict({"redbot": {"enable_local_access": "True"}})
resource = HttpResource(config["redbot"])
resource.set_request(sys.argv[1], headers=[("authorization", f"Bearer {sys.argv[2]}")])


@thor.events.on(resource)
def check_done() -> None:
    thor.stop()


resource.check()
thor.run()
if not resource.response.complete:
    sys.exit(f"no answer: {resource.fetch_error}")
print("status", resource.response.status_code)
for note in resource.response.notes:
    print(note.level.value, type(note).__name__, f"({note.subject})", note.summary)
for name, check in resource.subreqs.items():
    for note in check.response.notes:
        print(note.level.value, type(note).__name__, f"({name}: {note.subject})", note.summary)
