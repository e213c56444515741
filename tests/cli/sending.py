"""How clients of attacks send what they do not mean to see arrive."""


def send_now(s, data):
    """Sends as much as goes at once: the server may read none of it, and nobody waits for that."""
    s.setblocking(False)
    try:
        s.send(data)
    except OSError:
        pass
