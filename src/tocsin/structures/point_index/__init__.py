"""Points in the plane, asked by rectangles."""
