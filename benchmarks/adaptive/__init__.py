"""The matcher `adaptive` beside all others, over the papers' workloads and over others unlike them."""
