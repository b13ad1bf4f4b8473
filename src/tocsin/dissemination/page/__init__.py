"""A page to look at: the zones, an update, and the messages that travel because of it, for each strategy."""

from tocsin.dissemination.page.event_selection import ShownEvent, Sort, choose
from tocsin.dissemination.page.page import write_page
from tocsin.dissemination.page.scene import MOST_ZONES, Scene, make_scene

__all__ = ["MOST_ZONES", "Scene", "ShownEvent", "Sort", "choose", "make_scene", "write_page"]
