"""Events and subscriptions to measure and to try things out with."""
