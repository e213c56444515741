"""Cassandra's door and the Python driver: a server with the door, a session that gives rows as tuples."""

try:
    from cassandra import AlreadyExists, InvalidRequest
    from cassandra.cluster import Cluster
    from cassandra.protocol import ConfigurationException, SyntaxException
    from cassandra.query import BatchStatement, SimpleStatement
except ImportError:
    AlreadyExists = BatchStatement = Cluster = ConfigurationException = None
    InvalidRequest = SimpleStatement = SyntaxException = None

import cql_wire_server


class Door(cql_wire_server.Door):
    def cluster(self, **how):
        return Cluster(["127.0.0.1"], port=self.port, **how)


KEYSPACE = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


class Session:
    """`with Session(door) as s`: s(text) gives rows as tuples."""

    def __init__(self, door, **how):
        self.cluster = door.cluster(**how)
        self.session = self.cluster.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cluster.shutdown()

    def __call__(self, text, values=None):
        return [tuple(row) for row in self.session.execute(text, values)]

    def error(self, text, kind=InvalidRequest):
        try:
            self.session.execute(text)
        except kind as error:
            return str(error)
        raise AssertionError(f"{text} has not failed")
