"""Define the exception of math_verify."""


class TimeoutException(BaseException):
    """Raised only by `utils.timeout`: `parse`, `verify` and `math_metric` have no time limit."""
