"""`rewardstack check`: for each kind of service, a module that probes the service and knows the remedies."""
