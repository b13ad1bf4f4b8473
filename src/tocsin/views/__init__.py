"""Views: queries over tables. A change of a row is reformulated into messages that name the ranges they concern."""
