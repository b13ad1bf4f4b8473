"""AMKH's figure 1 and the studies behind its rules (Wu and Yu, "Monitoring Web-Based Subscription Services")."""
