"""`rewardstack check`: one module for each service, which probes it and knows the remedies."""
