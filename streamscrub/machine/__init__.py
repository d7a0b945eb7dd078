"""The machine behind ``StreamScrubber``: one state, and a module for each thing that happens to it.

The classes build on each other in the order state, calls, candidates, code, starts, markers, text, reasoning; none of
them knows a wire format. The state is one object because every decision may depend on all of it.
"""
