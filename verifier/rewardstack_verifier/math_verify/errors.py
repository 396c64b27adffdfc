"""The exception of math_verify."""


class TimeoutException(BaseException):
    """Raised by `utils.timeout` alone: `parse`, `verify` and `math_metric` have no time limit."""
