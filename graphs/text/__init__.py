"""Handles text and schemas from outside. For patterns on such text, use ``regex``, whose time is linear."""
