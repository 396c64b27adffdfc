"""`rewardstack check`: one module a service that tries it and knows the remedies for what may be wrong."""
