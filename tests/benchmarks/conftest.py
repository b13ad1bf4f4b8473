from tests.spark.conftest import spark  # noqa: F401 - the session of all tests
