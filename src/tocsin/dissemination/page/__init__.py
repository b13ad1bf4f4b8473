"""An HTML page that shows the zones, an update, and the messages of each strategy."""

from tocsin.dissemination.page.event_selection import EventKind, ShownEvent, choose_events
from tocsin.dissemination.page.scene import MOST_ZONES, Scene, make_scene, page_text

__all__ = ["MOST_ZONES", "EventKind", "Scene", "ShownEvent", "choose_events", "make_scene", "page_text"]
