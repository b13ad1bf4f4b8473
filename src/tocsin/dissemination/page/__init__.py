"""A page to look at: the zones, an update, and the messages that travel because of it, for each strategy."""

from tocsin.dissemination.page.page import write_page
from tocsin.dissemination.page.scene import MOST_ZONES, Scene, make_scene
from tocsin.dissemination.page.story import Chapter, Sort, choose

__all__ = ["MOST_ZONES", "Chapter", "Scene", "Sort", "choose", "make_scene", "write_page"]
