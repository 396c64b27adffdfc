"""A queue with a server and workers, as the tests of jobs have them."""

from tests.jobs.conftest import ledger as ledger
from tests.jobs.conftest import own as own
from tests.jobs.conftest import queue as queue
from tests.jobs.conftest import redis_server as redis_server
from tests.jobs.conftest import store as store
