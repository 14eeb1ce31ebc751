"""Lists the slots of PJRT_Api: `generate_slots.py pjrt_c_api.h > slots.inc`.

The table in plugin.cc fills every slot of this list, so that a header with more of them
needs no change here: what is new answers UNIMPLEMENTED, by name.
"""

import re
import sys

# These two return nothing, so no stub can report an error through them.
WITHOUT_RESULT = ("PJRT_Error_Destroy", "PJRT_Error_Message")


def slots(header: str) -> list[str]:
    """The names of PJRT_Api's function pointers, in order."""
    match = re.search(r"typedef struct PJRT_Api \{(.*?)\} PJRT_Api;", header, re.DOTALL)
    if match is None:
        raise ValueError("no struct PJRT_Api in this header")
    return re.findall(r"_PJRT_API_STRUCT_FIELD\(\s*(\w+)\s*\)", match.group(1))


def render(names: list[str]) -> str:
    """The include file: SLOT(name) for each slot that returns an error."""
    lines = ["// Written by generate_slots.py."]
    lines += [f"SLOT({name})" for name in names if name not in WITHOUT_RESULT]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Reads the header that the command line names."""
    with open(sys.argv[1], encoding="utf-8") as file:
        print(render(slots(file.read())), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
