# What a Python that was started ahead does before its script: it says so on its
# standard output, and waits for a line on descriptor 3. It then looks as if none
# of this had been.
import os
import sys

sys.path.remove("/hook")
sys.path_importer_cache.pop("/hook", None)
del os.environ["PYTHONPATH"], sys.modules["sitecustomize"]
try:
    import sitecustomize  # the machine's own; Python passes over there being none
finally:
    os.write(1, b"\n")
    if os.read(3, 1) != b"\n":
        os._exit(125)  # the gate has died
    os.close(3)
