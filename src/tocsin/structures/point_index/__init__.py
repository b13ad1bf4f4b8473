"""An index of points in the plane that is queried by rectangles."""
