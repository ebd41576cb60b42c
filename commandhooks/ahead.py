# What a Python that was started ahead does before its script. It then looks as
# if none of this had been. wait is what stands before this, of waits.py or
# forks.py.
import os
import sys

sys.path.remove("/hook")
sys.path_importer_cache.pop("/hook", None)
del os.environ["PYTHONPATH"], sys.modules["sitecustomize"]
try:
    import sitecustomize  # the machine's own; Python passes over there being none
finally:
    wait()
