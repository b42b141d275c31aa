"""The parts of run.py: cells, namespaces, processes, captures, the report."""
