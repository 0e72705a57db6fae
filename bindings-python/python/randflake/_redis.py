"""Runs commands of Redis with redis-py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from randflake import _urls
from randflake._adapter import Adapter, Refused, Rows, Unavailable
from randflake._threads import is_gevents
from randflake._urls import driver, without

if TYPE_CHECKING:
    import redis

_Answer = TypeVar("_Answer")


def opener(address: _urls.Address) -> Callable[[], Adapter]:
    driver("redis", "redis")
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    def connect() -> redis.Redis:
        ((host, port),) = address.hosts
        return redis.Redis(
            host=host,
            port=port,
            db=int(address.database),
            username=address.user,
            password=address.password,
            ssl=address.tls,
            ssl_ca_certs=address.options.get("sslrootcert"),
            socket_connect_timeout=_urls.TIMEOUT,
            socket_timeout=_urls.TIMEOUT,
            # Not for what took too long: the server may still be working on it.
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
        )

    return lambda: OwnRedis(connect(), address.hidden())


class Redis:
    server = "redis"

    def __init__(self, client: Any, hidden: tuple[str, ...]) -> None:
        self._client = client
        self._hidden = hidden

    def run(self, text: str, parameters: list[str]) -> Rows:
        return self._ask(lambda: rows_of(self._client.execute_command(text, *parameters)))

    def run_and_wait(
        self, text: str, parameters: list[str], replicas: int, milliseconds: int
    ) -> tuple[Rows, int]:
        def ask() -> tuple[Rows, int]:
            with self._client.pipeline(transaction=False) as pipeline:
                pipeline.execute_command(text, *parameters)
                pipeline.execute_command("WAIT", replicas, milliseconds)
                # Its own exception would repeat the statement, with the token in it.
                answer, confirmed = pipeline.execute(raise_on_error=False)
            for reply in (answer, confirmed):
                if isinstance(reply, Exception):
                    raise reply
            return rows_of(answer), int(confirmed)

        return self._ask(ask)

    def _ask(self, ask: Callable[[], _Answer]) -> _Answer:
        from redis import RedisError, ResponseError

        try:
            return ask()
        except ResponseError as error:
            raise Refused(type(error).__name__, without(self._hidden, error)) from None
        except RedisError as error:
            raise Unavailable(without(self._hidden, error)) from None

    def discard(self) -> None:
        # Connections in use are not ours: nothing is in progress here.
        self._client.connection_pool.disconnect(inuse_connections=False)


class Cluster(Redis):
    """A RedisCluster. A namespace is one key: all commands go to the node that has it."""

    def __init__(self, cluster: Any) -> None:
        super().__init__(None, hidden=())
        self._cluster = cluster
        self._key = ""

    def run(self, text: str, parameters: list[str]) -> Rows:
        return self._on_its_node(text, parameters, super().run)

    def run_and_wait(
        self, text: str, parameters: list[str], replicas: int, milliseconds: int
    ) -> tuple[Rows, int]:
        ask = super().run_and_wait
        return self._on_its_node(
            text, parameters, lambda text, rest: ask(text, rest, replicas, milliseconds)
        )

    def _on_its_node(
        self, text: str, parameters: list[str], run: Callable[[str, list[str]], _Answer]
    ) -> _Answer:
        if text == "EVAL":
            self._key = parameters[2]  # without a key: the node of the script before it
        self._find_node()
        try:
            return run(text, parameters)
        except Unavailable:
            # A replica may have taken its place. Only the others know whether it has.
            self._cluster.nodes_manager.initialize()
            raise
        except Refused as error:
            if error.code != "MovedError":
                raise
        self._cluster.nodes_manager.initialize()
        self._find_node()
        return run(text, parameters)

    def _find_node(self) -> None:
        node = self._cluster.get_node_from_key(self._key)
        self._client = self._cluster.get_redis_connection(node)

    def discard(self) -> None:
        if self._client is not None:
            super().discard()


def of_its_own(client: Any, module: Any) -> Any:
    """Returns a client with the settings of the application's, and with connections of its own.

    The application's connections are never closed here: a task or a thread may be about to use one.
    """
    pool = client.connection_pool
    own = module.ConnectionPool(connection_class=pool.connection_class, **pool.connection_kwargs)
    return module.Redis(connection_pool=own)


class OwnRedis(Redis):
    """A client that nobody else uses."""

    def run(self, text: str, parameters: list[str]) -> Rows:
        try:
            return super().run(text, parameters)
        finally:
            if is_gevents("socket"):  # a socket works only for the thread that has opened it
                self.discard()

    rest = Redis.discard


class Guest(OwnRedis):
    """With the settings of a redis.Redis."""

    def __init__(self, client: Any) -> None:
        import redis

        super().__init__(of_its_own(client, redis), hidden=())
        self._host = client  # whose Sentinel says where the master is

    def discard(self) -> None:
        import redis

        super().discard()
        self._client = of_its_own(self._host, redis)  # as it is now: a password may have changed


def rows_of(answer: Any) -> Rows:
    if isinstance(answer, dict):
        answer = [part for pair in answer.items() for part in pair]
    if not isinstance(answer, list):
        answer = [answer]
    rows = answer if all(isinstance(row, list) for row in answer) else [answer]
    return [[_cell(value) for value in row] for row in rows]


def _cell(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode()
    return None if value is None else str(value)
