def wait():
    """Says on standard output that it waits, and does for a line on descriptor 3."""
    os.write(1, b"\n")
    if os.read(3, 1) != b"\n":
        os._exit(125)  # the gate has died
    os.close(3)


